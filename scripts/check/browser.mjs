// End to end in real browsers: tests/browser/*.spec.mjs.
import { runSpecs } from './specs.mjs';
import { runAsProgram } from './tally.mjs';

/** Runs the specs; arguments name some of them (`npm run check:browser -- answers`). */
export async function browser(names = []) {
  return runSpecs('tests/browser', names);
}

await runAsProgram(import.meta.filename, () => browser(process.argv.slice(2)));
