// Writes what was measured into docs/: the table between two marks of performance.md, and the plot of speed over budget.
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { format } from 'prettier';
import { root } from '../repo.mjs';
import { plotBudgets } from './plot.mjs';
import { tables } from './table.mjs';

const FILE = path.join(root, 'docs/performance.md');
const PLOT = path.join(root, 'docs/budget-and-speed.svg');
const [BEGIN, END] = ['<!-- bench: begin -->', '<!-- bench: end -->'];

/** Replaces the table and the plot. */
export async function writeDocs(cells) {
  const text = await readFile(FILE, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${FILE} has no "${BEGIN}" … "${END}"`);
  const table = await format(tables(Object.values(cells)), { parser: 'markdown', printWidth: 130 });
  await writeFile(FILE, `${text.slice(0, begin)}${BEGIN}\n\n${table.trim()}\n\n${text.slice(end)}`);
  const plot = plotBudgets(Object.values(cells).filter(({ part, points }) => part === 'budgets' && points !== undefined));
  if (plot !== null) await writeFile(PLOT, plot);
  console.log(`docs: ${path.relative(root, FILE)}${plot === null ? '' : ` and ${path.relative(root, PLOT)}`} written`);
}
