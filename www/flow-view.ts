/** The flow panel: the picture of the engine at work and the charts, while somebody can see them. */

import type { Engine, Snapshot } from 'sluice-llm';
import type { Charts } from './charts.js';
import { byId, setText } from './dom.js';
import { FlowPicture } from './flow-picture.js';
import { percent, size } from './format.js';
import { SAMPLES_PER_SECOND, Samples } from './samples.js';

const panel = byId('flow', HTMLElement);
const on = byId('flow-on', HTMLInputElement);
const canvas = byId('picture', HTMLCanvasElement);
const place = byId('charts', HTMLElement);
const picture = new FlowPicture(canvas);
const samples = new Samples();
let charts: Charts | undefined;
let shown: Engine | undefined;
let seen = false;
let saidAt = 0;
let worked = false;
let unwatch: (() => void) | undefined;

/** Wires the panel to whatever engine there is; called once. */
export function wireFlow(engine: () => Engine | undefined, isWorking: () => boolean): void {
  on.addEventListener('change', () => follow(engine()));
  // A picture that nobody sees is not drawn, and nothing is sampled for it.
  new IntersectionObserver((entries) => {
    seen = entries.at(-1)?.isIntersecting ?? false;
    follow(engine());
  }).observe(panel);
  let width = 0;
  new ResizeObserver(() => {
    // Drawing changes the height.
    if (panel.clientWidth !== width) refreshFlow();
    width = panel.clientWidth;
  }).observe(panel);
  document.addEventListener('visibilitychange', () => follow(engine()));
  setInterval(() => {
    const current = engine();
    if (current !== shown) follow(current);
    if (current === undefined) return;
    const working = isWorking();
    if (worked && !working) describe(current); // nothing flows any more
    worked = working;
    samples.add(performance.now(), current.stats, working);
    if (isWatched()) charts?.update();
  }, 1000 / SAMPLES_PER_SECOND);
}

/** Draws anew: other colours, another width. */
export function refreshFlow(): void {
  picture.refresh();
  charts?.refresh();
}

function isWatched(): boolean {
  return on.checked && seen && document.visibilityState === 'visible';
}

/** Watches this engine, if it can be seen. */
function follow(engine: Engine | undefined): void {
  unwatch?.();
  unwatch = undefined;
  const wasHidden = place.hidden;
  byId('pictures', HTMLElement).hidden = place.hidden = engine === undefined || !on.checked;
  byId('flow-empty', HTMLElement).hidden = engine !== undefined || !on.checked;
  if (engine !== shown) {
    shown = engine;
    if (engine !== undefined) describe(engine);
  }
  if (wasHidden && !place.hidden) refreshFlow(); // what is hidden has no width to be drawn in
  if (engine === undefined || !isWatched()) return;
  unwatch = engine.watch((snapshot) => show(engine, snapshot), { framesPerSecond: FRAMES_PER_SECOND });
  void loadCharts();
}

function describe({ layout, model, plan }: Engine): void {
  picture.set(layout, model.layers);
  const share = plan.weightBytes > 0 ? plan.residentBytes / plan.weightBytes : 1;
  const ring =
    layout.slots === 0 ? 'nothing streams' : `the rest flows through ${layout.slots} slots of ${size(layout.slotBytes)}`;
  canvas.setAttribute(
    'aria-label',
    `${layout.tensors.length} tensors in ${model.layers} layers, side by side in the order of a pass; ${percent(share)} of the weights stay in memory, ${ring}`,
  );
  setText(
    byId('flow-text', HTMLElement),
    layout.slots === 0 ? 'Everything is in memory: nothing flows. Turn the dial down.' : 'Ask something to see the weights flow.',
  );
}

function show({ layout, model }: Engine, snapshot: Snapshot): void {
  picture.show(snapshot);
  const now = performance.now();
  if (now - saidAt < 250) return; // words are read slower than pictures are seen
  saidAt = now;
  const { stage, tensor, readsInFlight, prefill } = snapshot;
  const where = stage === 0 ? 'embedding' : stage > model.layers ? 'output head' : `layer ${stage} of ${model.layers}`;
  const name = tensor === null ? '' : (layout.tensors[tensor]?.name ?? '').replace(/^blk\.\d+\.|\.weight$/g, '');
  const parts = [prefill ? 'Reading the prompt' : 'Writing', where, name, `${readsInFlight} reads in flight`];
  setText(byId('flow-text', HTMLElement), parts.filter(Boolean).join(' · '));
}

async function loadCharts(): Promise<void> {
  if (charts !== undefined) return;
  try {
    const loaded = await import('./charts.js');
    charts ??= new loaded.Charts(place, samples);
  } catch {
    // offline before they were kept: the picture does without
  }
}

const FRAMES_PER_SECOND = 8;
