/** What really runs: memory to the byte, build and threads with the reasons, speeds, context. */

import { type Stats, capabilities } from 'sluice-llm';
import { byId, make, showFigures } from './dom.js';
import { exact, percent, size, speed } from './format.js';

const figures = byId('figures', HTMLElement);

/** The figures of an engine as the page shows them. Memory is the engine's own count, every byte of it. */
export function runFigures(stats: Readonly<Stats>): (readonly [name: string, value: string])[] {
  const { memoryBytes, memoryPeakBytes, budgetBytes, build, threads } = stats;
  return [
    ['Memory', `${exact(memoryBytes)} bytes`],
    ['Budget', `${exact(budgetBytes)} bytes`],
    ['Peak', `${exact(memoryPeakBytes)} bytes`],
    ['Build', `${build}, ${threads} thread${threads === 1 ? '' : 's'}`],
    ['Weights kept', `${size(stats.residentBytes)}, ${percent(stats.residentShare)}`],
    ['Writing', speed(stats.decodeTokensPerSecond)],
    ['Reading the prompt', `${exact(stats.promptTokens)} tokens at ${speed(stats.prefillTokensPerSecond)}`],
    ['Not computed again', `${exact(stats.reusedTokens)} tokens`],
    ['First token after', `${(stats.ttftMs / 1000).toFixed(2)} s`],
    ['Read from storage', size(stats.bytesRead)],
    ['Waited for reads', `${(stats.stallMs / 1000).toFixed(1)} s`],
    ['Context', `${exact(stats.contextUsed)} of ${exact(stats.contextMax)} tokens`],
    ['Seed', stats.seed === null ? '–' : String(stats.seed)],
  ];
}

/** Shows them; without an engine, what the browser could run. */
export function showRun(stats: Readonly<Stats> | undefined): void {
  const { build } = capabilities();
  showFigures(
    figures,
    stats === undefined ? [['Build', build === null ? 'none: this browser cannot run Sluice' : build]] : runFigures(stats),
  );
}

/** Says why no better build runs; called once, as nothing of it changes. */
export function showReasons(): void {
  const { reasons, build } = capabilities();
  const all = reasons.length > 0 ? reasons : [`The best there is: ${build ?? ''}.`];
  byId('reasons', HTMLUListElement).replaceChildren(...all.map((reason) => make('li', {}, reason)));
}
