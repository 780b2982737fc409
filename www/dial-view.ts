/** The dial: the budget between the model's floor and all of it in memory, what each setting keeps and streams, and the ledger. */

import { capabilities } from 'sluice-llm';
import { PLACES, bytesAt, isFree, placeOf } from './dial.js';
import { byId, setText, showFigures } from './dom.js';
import { exact, percent, size, speed } from './format.js';
import type { Session } from './session.js';

/** What a visitor does with the dial. */
export interface DialActions {
  /** Moves it: plan, open nothing. */
  plan(memory: number): void;
  /** Lets go of it. */
  settle(): void;
  change(options: { context: number | undefined; threads: number | undefined }): void;
}

const dial = byId('dial', HTMLInputElement);
const context = byId('context', HTMLInputElement);
const threads = byId('threads', HTMLInputElement);

/** Wires the panel; called once. */
export function wireDial(session: Session, actions: DialActions): void {
  dial.max = String(PLACES);
  dial.addEventListener('input', () => {
    if (session.scale !== undefined) actions.plan(bytesAt(session.scale, dial.valueAsNumber));
  });
  dial.addEventListener('change', actions.settle);
  const changed = (): void => actions.change({ context: numberIn(context), threads: numberIn(threads) });
  context.addEventListener('change', changed);
  threads.addEventListener('change', changed);
  threads.max = String(navigator.hardwareConcurrency);
}

/** Shows the session's budget and its plan. */
export function showDial(session: Session): void {
  const { scale, memory, fit } = session;
  const free = scale !== undefined && isFree(scale);
  // What is changed now would not reach the engine that is being opened.
  const busy = session.phase === 'inspecting' || session.phase === 'opening';
  dial.disabled = !free || busy;
  context.disabled = threads.disabled = busy;
  context.max = String(session.card?.trainedContext || '');
  setText(byId('dial-why', HTMLElement), why(session));
  setText(byId('dial-floor', HTMLElement), scale === undefined ? '' : size(scale.floorBytes));
  setText(byId('dial-full', HTMLElement), scale === undefined ? '' : size(scale.fullBytes));
  setText(byId('dial-value', HTMLOutputElement), scale === undefined ? '–' : size(memory));
  const share = fit?.residentShare ?? null;
  byId('split', HTMLElement).hidden = share === null;
  byId('split-kept', HTMLElement).style.width = `${(share ?? 0) * 100}%`;
  if (scale !== undefined && document.activeElement !== dial) dial.value = String(placeOf(scale, memory));
  dial.setAttribute('aria-valuetext', share === null ? '–' : `${size(memory)}: ${percent(share)} of the weights stay in memory`);
  const plan = fit?.plan ?? null;
  showFigures(
    byId('plan', HTMLElement),
    plan === null
      ? []
      : [
          ['Keeps in memory', `${size(plan.residentBytes)}, ${percent(share ?? 0)} of the weights`],
          ['Streams for each token', plan.streamedBytesPerToken === 0 ? 'nothing' : size(plan.streamedBytesPerToken)],
          ['Slots', plan.slots === 0 ? 'none' : `${plan.slots} of ${size(plan.slotBytes)}`],
          ['Context', `${exact(plan.context)} tokens`],
          ['Expected speed', fit?.predicted == null ? '–' : speed(fit.predicted.decodeTokensPerSecond)],
        ],
  );
  const ledger = Object.entries(plan?.ledger ?? {}).sort(([, a], [, b]) => b - a);
  showFigures(
    byId('ledger', HTMLElement),
    ledger.map(([item, bytes]) => [words(item), exact(bytes)] as const),
  );
}

function why({ scale, fit, source, phase }: Session): string {
  if (source === undefined) return 'Choose a model first.';
  if (scale === undefined) return phase === 'inspecting' ? 'Reading the header…' : (fit?.refused?.message ?? '');
  if ('url' in source && !capabilities().opfs) {
    return (
      'This browser gives the page no storage for files, so weights from an address cannot be read again and all of them stay in ' +
      'memory; the dial changes the room for the conversation alone. Pick the file from your disk to see it stream.'
    );
  }
  if (!isFree(scale)) return 'There is nothing to choose: the least that runs this model holds all of it.';
  return 'From the least that runs it to all of it in memory. Less memory means that more is read again for each token. An open model reopens, and the conversation stays.';
}

/** `embeddingRows` → "embedding rows" */
function words(item: string): string {
  return item.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function numberIn(input: HTMLInputElement): number | undefined {
  return input.value === '' || !input.checkValidity() ? undefined : Math.trunc(input.valueAsNumber);
}
