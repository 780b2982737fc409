/** Figures over time for the charts: what the engine's running counts mean per second, the last two minutes of it. */

import type { Stats } from 'sluice-llm';

/** The part of the figures that is charted. */
export type Sampled = Pick<Stats, 'memoryBytes' | 'budgetBytes' | 'bytesRead' | 'stallMs' | 'decodeTokensPerSecond'>;

/** Columns of equal length; time in seconds since the first sample. */
export class Samples {
  readonly time: number[] = [];
  readonly memory: number[] = [];
  readonly budget: number[] = [];
  readonly speed: number[] = [];
  readonly reading: number[] = [];
  readonly stall: number[] = [];
  #began: number | undefined;
  #last: { ms: number; bytesRead: number; stallMs: number } | undefined;

  /** Adds what is true at `ms`; `working` says whether an answer is under way. */
  add(ms: number, stats: Sampled, working: boolean): void {
    this.#began ??= ms;
    // Another engine counts from 0 again.
    const last = this.#last !== undefined && stats.bytesRead >= this.#last.bytesRead ? this.#last : undefined;
    const seconds = last === undefined ? 0 : (ms - last.ms) / 1000;
    const rate = (now: number, before: number | undefined): number =>
      seconds > 0 && before !== undefined ? Math.max(0, now - before) / seconds : 0;
    this.time.push((ms - this.#began) / 1000);
    this.memory.push(stats.memoryBytes / 1e6);
    this.budget.push(stats.budgetBytes / 1e6);
    this.speed.push(working ? stats.decodeTokensPerSecond : 0);
    this.reading.push(rate(stats.bytesRead, last?.bytesRead) / 1e6);
    this.stall.push(Math.min(1000, rate(stats.stallMs, last?.stallMs)));
    this.#last = { ms, bytesRead: stats.bytesRead, stallMs: stats.stallMs };
    if (this.time.length > KEPT) for (const column of this.#columns()) column.shift();
  }

  #columns(): number[][] {
    return [this.time, this.memory, this.budget, this.speed, this.reading, this.stall];
  }
}

/** Samples a second, and how many are kept. */
export const SAMPLES_PER_SECOND = 2;
const KEPT = 120 * SAMPLES_PER_SECOND;
