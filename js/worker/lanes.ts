/** Small tools of asynchronous reading: a cap on what runs at once, a pause, a timer. */

/** Runs at most `n` pieces of work at once, in the order they came. */
export class Lanes {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(n: number) {
    this.#free = n;
  }

  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

/** Resolves after `ms`; rejects with the signal's reason when it aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** Calls `late` once nothing has happened for `ms`. */
export class Timer {
  readonly #ms: number;
  readonly #late: () => void;
  #id: ReturnType<typeof setTimeout>;

  constructor(ms: number, late: () => void) {
    this.#ms = ms;
    this.#late = late;
    this.#id = setTimeout(late, ms);
  }

  restart(): void {
    clearTimeout(this.#id);
    this.#id = setTimeout(this.#late, this.#ms);
  }

  stop(): void {
    clearTimeout(this.#id);
  }
}
