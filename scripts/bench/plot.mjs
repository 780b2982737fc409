// The dial between memory and speed as an SVG.
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';

const MODELS = { smollm2: 'SmolLM2 135M', gemma3: 'Gemma 3 270M' };

/** A line for each cell of the part `budgets`; `null` without any. */
export function plotBudgets(cells) {
  if (cells.length === 0) return null;
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const points = cells.flatMap(({ browser, model, threads, points }) =>
    points.map(({ memory, tokensPerSecond }) => ({
      memory: memory / 1e6,
      speed: tokensPerSecond,
      line: `${MODELS[model]}, ${threads} thread${threads === 1 ? '' : 's'}, ${browser}`,
    })),
  );
  const svg = Plot.plot({
    document,
    width: 720,
    height: 420,
    marginRight: 190,
    style: { background: 'white', color: 'black' },
    x: { label: 'memory budget (MB)', type: 'log', tickFormat: String, ticks: [32, 48, 64, 96, 128, 192, 256, 384] },
    y: { label: 'tokens per second', zero: true, grid: true },
    marks: [
      Plot.lineY(points, { x: 'memory', y: 'speed', stroke: 'line', marker: 'dot' }),
      Plot.text(points, Plot.selectLast({ x: 'memory', y: 'speed', z: 'line', text: 'line', textAnchor: 'start', dx: 8 })),
    ],
  });
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  return `${svg.outerHTML}\n`;
}
