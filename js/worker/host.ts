/** The worker as the engine's host: turns of the event loop, the device's memory, and what the page hears of a run under way. */

import type { Snapshot } from '../layout.js';
import type { Progress, Stats } from '../options.js';
import type { News } from '../protocol.js';
import { platform } from './platform.js';

/** `JsHost` of `src/bindings/web_host.rs`. */
export interface Host {
  readonly deviceBytes: number | undefined;
  /** Resolves after the messages that have arrived were handled. */
  turn(): Promise<void>;
  progress(stage: Progress['stage'], loadedBytes: number, totalBytes: number, layer: number | undefined, layers: number): void;
  /** What is to be shown of the run now: 1 for the figures, 2 for a picture, 3 for both, 0 for nothing. */
  wants(): number;
  stats(stats: Stats): void;
  snapshot(snapshot: Snapshot): void;
  /** From now on so many pictures a second at most; 0: none. */
  watch(framesPerSecond: number): void;
}

/** The host; `tell` hears of progress and figures a few times a second, and of pictures as often as they are watched. */
export function makeHost(tell: (news: News) => void): Host {
  const turns = new Turns();
  const rate = new Rate();
  const statsDue = every(STATS_MS);
  let snapshotDue = (): boolean => false;
  return {
    deviceBytes: deviceBytes(),
    turn: () => turns.next(),
    progress(stage, loadedBytes, totalBytes, layer, layers) {
      if (!rate.isDue(stage, loadedBytes === totalBytes)) return;
      const bytesPerSecond = rate.at(stage, loadedBytes);
      const secondsLeft = bytesPerSecond > 0 ? (totalBytes - loadedBytes) / bytesPerSecond : null;
      const progress = { stage, loadedBytes, totalBytes, bytesPerSecond, secondsLeft, layer: layer ?? null, layers };
      tell({ kind: 'progress', progress });
    },
    wants: () => (statsDue() ? 1 : 0) + (snapshotDue() ? 2 : 0),
    stats: (stats) => tell({ kind: 'stats', stats }),
    snapshot: (snapshot) => tell({ kind: 'snapshot', snapshot }),
    watch: (framesPerSecond) => (snapshotDue = framesPerSecond > 0 ? every(1000 / framesPerSecond) : () => false),
  };
}

/** True now and then: at the first call, and when so many milliseconds have passed since it was true. */
function every(ms: number): () => boolean {
  let last = -Infinity;
  return () => {
    const now = performance.now();
    if (now - last < ms) return false;
    last = now;
    return true;
  };
}

/** Bytes per second since a stage began; one that goes back has begun again. */
class Rate {
  readonly #stages = new Map<string, { first: number; since: number; last: number }>();
  readonly #told = new Map<string, number>();

  /** Is it time to tell of the stage again? */
  isDue(stage: string, done: boolean): boolean {
    const now = performance.now();
    if (!done && now - (this.#told.get(stage) ?? -Infinity) < PROGRESS_MS) return false;
    this.#told.set(stage, now);
    return true;
  }

  at(stage: string, bytes: number): number {
    const now = performance.now();
    const known = this.#stages.get(stage);
    if (known === undefined || bytes < known.last) {
      this.#stages.set(stage, { first: bytes, since: now, last: bytes });
      return 0;
    }
    known.last = bytes;
    const seconds = (now - known.since) / 1000;
    return seconds > 0 ? (bytes - known.first) / seconds : 0;
  }
}

/**
 * Gives the event loop a turn. A message to oneself is a task of its own and is not delayed, unlike a timer, and comes after the
 * messages that were there before it.
 */
class Turns {
  readonly #channel = new MessageChannel();
  readonly #waiting: (() => void)[] = [];

  constructor() {
    this.#channel.port2.onmessage = () => this.#waiting.shift()?.();
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      if (platform.afterMessages !== undefined) return platform.afterMessages(resolve);
      this.#waiting.push(resolve);
      this.#channel.port1.postMessage(null);
    });
  }
}

/** The device's memory in bytes, where the browser says (in steps, at most 8 GiB or so). */
function deviceBytes(): number | undefined {
  if (platform.deviceBytes !== undefined) return platform.deviceBytes;
  const gibibytes = 'deviceMemory' in navigator ? navigator.deviceMemory : undefined;
  return typeof gibibytes === 'number' ? gibibytes * 2 ** 30 : undefined;
}

const PROGRESS_MS = 100;
const STATS_MS = 100;
