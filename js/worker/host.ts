/** The worker as the engine's host: turns of the event loop, the device's memory, progress. */

import type { Progress } from '../options.js';

/** `JsHost` of `src/bindings/web_host.rs`. */
export interface Host {
  readonly deviceBytes: number | undefined;
  /** Resolves after the messages that have arrived were handled. */
  turn(): Promise<void>;
  progress(loadedBytes: number, totalBytes: number): void;
}

/** The host; `tell` hears of progress a few times a second. */
export function makeHost(tell: (progress: Progress) => void): Host {
  const turns = new Turns();
  const started = performance.now();
  let last = -Infinity;
  return {
    deviceBytes: deviceBytes(),
    turn: () => turns.next(),
    progress(loadedBytes, totalBytes) {
      const now = performance.now();
      if (now - last < PROGRESS_MS && loadedBytes < totalBytes) return;
      last = now;
      const seconds = (now - started) / 1000;
      tell({ loadedBytes, totalBytes, bytesPerSecond: seconds > 0 ? loadedBytes / seconds : 0 });
    },
  };
}

/**
 * Gives the event loop a turn. A message to oneself is a task of its own and is not delayed, unlike a timer, and comes after the
 * messages that were there before it.
 */
class Turns {
  readonly #channel = new MessageChannel();
  #resolve: (() => void) | undefined;

  constructor() {
    this.#channel.port2.onmessage = () => this.#resolve?.();
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#channel.port1.postMessage(null);
    });
  }
}

/** The device's memory in bytes, where the browser says (in steps, at most 8 GiB or so). */
function deviceBytes(): number | undefined {
  const gibibytes = 'deviceMemory' in navigator ? navigator.deviceMemory : undefined;
  return typeof gibibytes === 'number' ? gibibytes * 2 ** 30 : undefined;
}

const PROGRESS_MS = 100;
