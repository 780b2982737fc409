// End to end in real browsers: tests/browser/*.spec.mjs under `node --test`, one file at a time (there are two cores).
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../repo.mjs';
import { counted, runAsProgram } from './tally.mjs';

/** Runs the specs; arguments name some of them (`npm run check:browser -- answers`). */
export async function browser(names = []) {
  const folder = path.join(root, 'tests/browser');
  const specs = (await readdir(folder)).filter((name) => name.endsWith('.spec.mjs'));
  const wanted = names.length === 0 ? specs : specs.filter((name) => names.some((part) => name.startsWith(part)));
  const files = wanted.map((name) => path.join(folder, name));
  return counted(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files]);
}

await runAsProgram(import.meta.filename, () => browser(process.argv.slice(2)));
