/**
 * The download workers of one writer, one after the other: the next one loads while the last one ends, and one that does not start is
 * replaced. It knows nothing of what they say.
 */

import type { SluiceError } from '../errors.js';
import type { FromDownload, ToDownload } from '../store/download-protocol.js';
import { HiredWorker } from './hired.js';
import { sourceFailed } from './source.js';

/** Hears what becomes of the workers. */
export interface WorkerEvents {
  /** What the present worker says. */
  onMessage(message: FromDownload): void;
  /** The present worker did not start and is gone: `start` is to be called, and everything said anew. */
  onMissing(): void;
  /** None can be started. */
  onFailed(error: SluiceError): void;
}

/** At most one worker at work, and one that loads. */
export class DownloadWorkers {
  readonly #events: WorkerEvents;
  #current: HiredWorker | undefined;
  #next: HiredWorker | undefined;
  /** Runs until the present worker has said something. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Workers in a row that did not start. */
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
    // What it has said may wait behind the timer for this worker to be free.
    const late = (): unknown => (this.#timer = setTimeout(() => this.#late(worker), GRACE_MS));
    this.#timer = setTimeout(late, PATIENCE_MS * 2 ** this.#mute);
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
    worker.onmessage = (message) => {
      if (worker !== this.#current) return;
      clearTimeout(this.#timer);
      this.#mute = 0;
      this.#events.onMessage(message as FromDownload); // a download worker says nothing else
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
const MOST_MUTE = 4;
