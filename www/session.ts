/** The chosen model and its engine: verdict, budget, opening, reopening, the end of it. It knows nothing of the page. */

import { type Engine, type Fit, type ModelCard, type Progress, SluiceError, type Verdict, inspect, open } from 'sluice-llm';
import type { Scale } from './dial.js';
import { latest } from './latest.js';

/** Where a model is: an address, or files of the visitor's (several: the parts of a split model). */
export type Source = { readonly url: string } | { readonly files: readonly File[] };

/** What goes on: nothing is chosen, its header is read, it can be opened, it is being opened, it answers. */
export type Phase = 'none' | 'inspecting' | 'chosen' | 'opening' | 'ready';

/** What went wrong, with the package's code; `null` for a fault of the page itself. */
export interface Failure {
  readonly message: string;
  readonly error: SluiceError | null;
}

/** One model at a time. `onChange` is called after each change of what can be read here. */
export class Session {
  phase: Phase = 'none';
  source: Source | undefined;
  card: Readonly<ModelCard> | undefined;
  /** How the model fits the budget that is set. */
  fit: Readonly<Fit> | undefined;
  /** Ends of the dial; absent when no budget runs the model. */
  scale: Scale | undefined;
  /** The budget that is set; what the engine runs under once it is opened. */
  memory = 0;
  /** Positions of the context; the package decides when it is absent. */
  context: number | undefined;
  /** Compute threads; the package decides when it is absent. */
  threads: number | undefined;
  engine: Engine | undefined;
  /** The latest of each stage. */
  progress: Partial<Record<Progress['stage'], Progress>> = {};
  failure: Failure | undefined;
  readonly #onChange: () => void;
  readonly #package: { inspect: typeof inspect; open: typeof open };
  #verdict: Verdict | undefined;
  #opening = Promise.resolve();
  #controller = new AbortController();

  /** `sluice` stands in for the package in tests. */
  constructor(onChange: () => void, sluice = { inspect, open }) {
    this.#onChange = onChange;
    this.#package = sluice;
  }

  /** Reads a model's header and gives the verdict; what was chosen before is closed. */
  async choose(source: Source): Promise<void> {
    const { signal, closed } = this.#leave();
    this.source = source;
    this.#change('inspecting');
    await closed;
    await this.#guard(signal, async () => {
      const verdict = await this.#package.inspect(packageSource(source), { ...this.#options(), signal });
      if (signal.aborted) return verdict.close();
      this.#verdict = verdict;
      this.card = verdict.model;
      await this.#measure(verdict, verdict.fit);
      if (!signal.aborted) this.#change('chosen');
    });
  }

  /** Gives the verdict anew, as more is known by now; nothing changes when that fails. */
  async review(): Promise<void> {
    const [{ source }, { signal }] = [this, this.#controller];
    if (source === undefined) return;
    const { memory } = this;
    const options = { ...this.#options(), memory, signal };
    const verdict = await this.#package.inspect(packageSource(source), options).catch(() => undefined);
    if (verdict === undefined || signal.aborted || source !== this.source) return verdict?.close();
    void this.#verdict?.close();
    this.#verdict = verdict;
    if (memory !== this.memory) return this.plan(this.memory); // the dial was moved meanwhile
    this.fit = verdict.fit;
    this.#onChange();
  }

  /** Sets the budget and plans with it; an engine that is open runs on under its own until `reopen`. */
  plan(memory: number): void {
    this.memory = memory;
    this.#replan(memory);
  }

  /** Takes another context or number of threads: both ends of the dial move. */
  async change(options: { context: number | undefined; threads: number | undefined }): Promise<void> {
    Object.assign(this, options);
    const [verdict, { signal }] = [this.#verdict, this.#controller];
    if (verdict === undefined) return;
    this.failure = undefined;
    await this.#guard(signal, async () => {
      const fit = await verdict.plan(this.#options());
      await this.#measure(verdict, fit);
    });
    this.#onChange();
  }

  /** Opens the chosen model under the budget, or waits for what is being opened; resolves when it can be asked, or has failed. */
  async open(): Promise<void> {
    if (this.phase === 'chosen') this.#opening = this.#open();
    if (this.phase === 'opening') await this.#opening;
  }

  async #open(): Promise<void> {
    const { source } = this;
    if (source === undefined) return;
    const { signal } = this.#controller;
    this.failure = undefined;
    this.progress = {};
    this.#change('opening');
    await this.#guard(signal, async () => {
      const onProgress = (progress: Progress): void => {
        if (signal.aborted) return;
        this.progress[progress.stage] = progress;
        this.#onChange();
      };
      const options = { ...this.#options(), memory: this.memory, signal, onProgress };
      const engine = await this.#package.open(packageSource(source), options);
      if (signal.aborted) return engine.close();
      this.engine = engine;
      this.#change('ready');
    });
  }

  /** Closes the engine, keeps the verdict. Opening that is under way is given up. */
  async shut(): Promise<void> {
    if (this.phase !== 'ready' && this.phase !== 'opening') return;
    this.#controller.abort();
    this.#controller = new AbortController();
    const { engine } = this;
    this.engine = undefined;
    this.#change('chosen');
    await engine?.close();
  }

  /** The same model under the budget that is set now. */
  async reopen(): Promise<void> {
    await this.shut();
    await this.open();
  }

  /** Something failed outside: after a fault of its own an engine is gone. */
  async fail(thrown: unknown): Promise<void> {
    this.failure = failureOf(thrown);
    if (this.failure.error?.code === 'internal') await this.shut();
    this.#onChange();
  }

  /** Lets go of the model altogether. */
  async leave(): Promise<void> {
    const { closed } = this.#leave();
    this.#change('none');
    await closed;
  }

  readonly #replan = latest(
    (memory: number) => this.#verdict?.plan({ ...this.#options(), memory }) ?? Promise.reject(new Error('nothing is chosen')),
    (fit, memory) => {
      if (memory !== this.memory) return;
      this.fit = fit;
      this.#onChange();
    },
  );

  /** The ends of the dial, and a budget between them. */
  async #measure(verdict: Verdict, fit: Readonly<Fit>): Promise<void> {
    const full = await verdict.plan({ ...this.#options(), memory: MOST_BYTES });
    const { floorBytes } = fit;
    this.scale = undefined;
    this.fit = fit;
    if (floorBytes === null || full.plan === null) return;
    const fullBytes = Math.max(floorBytes, full.plan.totalBytes);
    this.scale = { floorBytes, fullBytes };
    const wanted = this.memory > 0 ? this.memory : (fit.plan?.budgetBytes ?? floorBytes);
    this.memory = Math.min(fullBytes, Math.max(floorBytes, wanted));
    this.fit = await verdict.plan({ ...this.#options(), memory: this.memory });
  }

  #options(): { context?: number; threads?: number } {
    const { context, threads } = this;
    return { ...(context === undefined ? {} : { context }), ...(threads === undefined ? {} : { threads }) };
  }

  /** Forgets everything at once; `closed` resolves when the engine's memory is returned. */
  #leave(): { signal: AbortSignal; closed: Promise<void> } {
    this.#controller.abort();
    this.#controller = new AbortController();
    const { engine } = this;
    void this.#verdict?.close();
    this.#verdict = this.engine = this.card = this.fit = this.scale = this.source = this.failure = undefined;
    this.memory = 0;
    this.progress = {};
    return { signal: this.#controller.signal, closed: engine?.close() ?? Promise.resolve() };
  }

  async #guard(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (signal.aborted) return;
      this.failure = failureOf(thrown);
      this.#change(this.engine ? 'ready' : this.#verdict ? 'chosen' : 'none');
    }
  }

  #change(phase: Phase): void {
    this.phase = phase;
    this.#onChange();
  }
}

/** What a source is called. */
export function nameOf(source: Source): string {
  if ('files' in source) return source.files.map(({ name }) => name).join(', ');
  const name = source.url.split(/[?#]/)[0]?.split('/').pop() ?? '';
  try {
    return decodeURIComponent(name) || source.url;
  } catch {
    return name; // a lone % stands for itself
  }
}

function packageSource(source: Source): string | File[] | File {
  if ('url' in source) return source.url;
  const [only, ...more] = source.files;
  return only !== undefined && more.length === 0 ? only : [...source.files];
}

function failureOf(thrown: unknown): Failure {
  if (thrown instanceof SluiceError) return { message: thrown.message, error: thrown };
  return { message: `The page itself is at fault. ${String(thrown)}`, error: null };
}

/** More than one linear memory holds: the planner takes what is useful. */
const MOST_BYTES = 4 * 2 ** 30;
