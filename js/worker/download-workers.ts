/**
 * The download workers of one writer, one after the other: the next one loads while the last one ends, and one that does not start, or
 * does not answer any more, is replaced. Of what they say it knows `alive` alone.
 */

import type { SluiceError } from '../errors.js';
import type { FromDownload, ToDownload } from '../store/download-protocol.js';
import { HiredWorker } from './hired.js';
import { sourceFailed } from './source.js';

/** Hears what becomes of the workers. */
export interface WorkerEvents {
  /** What the present worker says. */
  onMessage(message: FromDownload): void;
  /** The present worker did not answer and is gone: `start` is to be called, and everything said anew. */
  onMissing(): void;
  /** None can be started. */
  onFailed(error: SluiceError): void;
}

/** At most one worker at work, and one that loads. */
export class DownloadWorkers {
  readonly #events: WorkerEvents;
  #current: HiredWorker | undefined;
  #next: HiredWorker | undefined;
  /** Runs until the present worker says something. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Workers that did not answer since one has done something. */
  #mute = 0;

  constructor(events: WorkerEvents) {
    this.#events = events;
  }

  get isRunning(): boolean {
    return this.#current !== undefined;
  }

  /** Another worker, which has heard nothing yet, is the present one from now on. */
  start(): void {
    const worker = this.#next ?? this.#make();
    [this.#current, this.#next] = [worker, undefined];
    this.#unless(PATIENCE_MS * 2 ** this.#mute, () => this.#late(worker));
  }

  /** Lets the next worker load. */
  prepare(): void {
    this.#next ??= this.#make();
  }

  /** To the present worker, if there is one. */
  post(message: ToDownload, transfer: Transferable[] = []): void {
    this.#current?.postMessage(message, transfer);
  }

  /** Ends the present worker. */
  leave(): void {
    clearTimeout(this.#timer);
    this.#current?.terminate();
    this.#current = undefined;
  }

  stop(): void {
    this.leave();
    this.#next?.terminate();
    this.#next = undefined;
  }

  #make(): HiredWorker {
    const worker = new HiredWorker('download');
    worker.onmessage = (heard) => {
      if (worker !== this.#current) return;
      const message = heard as FromDownload; // a download worker says nothing else
      if (message.kind !== 'alive') this.#mute = 0;
      this.#unless(SILENCE_MS, () => this.#ask(worker));
      this.#events.onMessage(message);
    };
    worker.onfault = () => {
      // One that only loads is tried again when its turn comes, and then what is wrong comes out.
      if (worker === this.#next) this.#next = undefined;
      if (worker !== this.#current) return worker.terminate();
      this.leave();
      this.#events.onFailed(notStarted('it could not be started'));
    };
    return worker;
  }

  /** Does `work` unless the present worker says something within `ms`. */
  #unless(ms: number, work: () => void): void {
    clearTimeout(this.#timer);
    // What it has said may wait behind the timer for this worker to be free.
    this.#timer = setTimeout(() => (this.#timer = setTimeout(work, GRACE_MS)), ms);
  }

  /** It may have nothing to say, or be gone without a word. */
  #ask(worker: HiredWorker): void {
    worker.postMessage({ kind: 'ask' } satisfies ToDownload);
    this.#unless(ANSWER_MS, () => this.#late(worker));
  }

  #late(worker: HiredWorker): void {
    if (worker !== this.#current) return;
    this.leave();
    this.#mute += 1;
    if (this.#mute < MOST_MUTE) this.#events.onMissing();
    else this.#events.onFailed(notStarted('it did not start in time'));
  }
}

function notStarted(why: string): SluiceError {
  const message =
    `the package's own file worker/download.js cannot be used (${why}): check that it is served beside worker/main.js, ` +
    "and that the page's Content-Security-Policy allows workers; or open with cache: 'none'";
  return sourceFailed(message, { reason: 'worker' });
}

/** The worker's files may come over a slow network; each next one gets twice the time. */
const PATIENCE_MS = 5000;
const GRACE_MS = 200;
/** One that runs has a slow disk to wait for, or nothing to say. */
const SILENCE_MS = 10_000;
const ANSWER_MS = 20_000;
const MOST_MUTE = 4;
