/** Charts over time: memory against the budget, speed, reading, waiting. Loaded with the first opened model. */

import 'uplot/dist/uPlot.min.css';
import uPlot from 'uplot';
import { colourOf, make, setText } from './dom.js';
import type { Samples } from './samples.js';

type Column = Exclude<{ [K in keyof Samples]: Samples[K] extends number[] ? K : never }[keyof Samples], 'time'>;

/** The charts in one element. */
export class Charts {
  readonly #samples: Samples;
  readonly #charts: { spec: Chart; chart: uPlot; says: HTMLElement }[] = [];
  readonly #place: HTMLElement;

  constructor(place: HTMLElement, samples: Samples) {
    this.#place = place;
    this.#samples = samples;
    this.refresh();
  }

  /** Makes them anew, in the width and the colours that the page has now. */
  refresh(): void {
    for (const { chart } of this.#charts.splice(0)) chart.destroy();
    this.#place.replaceChildren();
    const width = this.#place.clientWidth;
    if (width === 0) return;
    for (const spec of CHARTS) {
      const says = make('figcaption');
      const figure = make('figure', {}, says);
      this.#place.append(figure);
      const axis = { stroke: colourOf('soft'), grid: { stroke: colourOf('line'), width: 1 }, ticks: { show: false } };
      const chart = new uPlot(
        {
          width,
          height: 110,
          legend: { show: false },
          cursor: { show: false },
          // Time is seconds since the model was opened, not a date.
          scales: { x: { time: false }, y: { range: (_, _low, high) => [0, Math.max(spec.least, high * 1.1)] } },
          axes: [
            { ...axis, size: 24, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
            { ...axis, size: 48 },
          ],
          series: [
            {},
            ...spec.columns.map(([, tint], index) => ({
              stroke: colourOf(tint),
              width: 1.5,
              points: { show: false },
              ...(index > 0 ? { dash: [5, 4] } : {}),
            })),
          ],
        },
        this.#columns(spec),
        figure,
      );
      this.#charts.push({ spec, chart, says });
    }
    this.update();
  }

  /** Shows what the samples have become. */
  update(): void {
    for (const { spec, chart, says } of this.#charts) {
      chart.setData(this.#columns(spec));
      setText(says, spec.says(spec.columns.map(([column]) => this.#samples[column].at(-1) ?? 0)));
    }
  }

  #columns(spec: Chart): uPlot.AlignedData {
    return [this.#samples.time, ...spec.columns.map(([column]) => this.#samples[column])];
  }
}

interface Chart {
  /** Column and colour; those behind the first are dashed. */
  readonly columns: readonly (readonly [column: Column, tint: string])[];
  /** The highest value of an empty chart. */
  readonly least: number;
  says(latest: readonly number[]): string;
}

const CHARTS: readonly Chart[] = [
  {
    columns: [
      ['memory', 'kept'],
      ['budget', 'computing'],
    ],
    least: 10,
    says: ([memory = 0, budget = 0]) => `Memory: ${memory.toFixed(1)} MB of the budget's ${budget.toFixed(1)} MB (dashed)`,
  },
  { columns: [['speed', 'ready']], least: 1, says: ([speed = 0]) => `Writing: ${speed.toFixed(1)} tok/s` },
  { columns: [['reading', 'reading']], least: 1, says: ([rate = 0]) => `Reading weights: ${rate.toFixed(0)} MB/s` },
  { columns: [['stall', 'bad']], least: 100, says: ([stall = 0]) => `Waiting for reads: ${stall.toFixed(0)} ms of each second` },
];
