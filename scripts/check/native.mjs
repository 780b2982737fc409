// The Rust tests, natively; the native command itself, as users build it; and what the documentation has from it.
import { readFile } from 'node:fs/promises';
import { modelsFile, modelsText } from '../docs/models.mjs';
import { counted, runAsProgram, single, sum } from './tally.mjs';

/** Builds the command, asks it for the table of docs/models.md, then runs `cargo test`. */
export async function native() {
  return sum([
    await single('cargo', ['build', '--quiet', '--release', '--bins']),
    await modelsTable(),
    // The tests run real models, which takes optimised code.
    await counted('cargo', ['test', '--quiet', '--no-fail-fast', '--config', 'profile.test.opt-level=3']),
  ]);
}

async function modelsTable() {
  const isCurrent = (await modelsText()) === (await readFile(modelsFile, 'utf8'));
  if (!isCurrent) console.error('docs/models.md is not what the planner says: run `npm run docs`');
  return { passed: Number(isCurrent), failed: Number(!isCurrent) };
}

await runAsProgram(import.meta.filename, native);
