// Formatting: rustfmt and prettier. `--write` formats instead of complaining.
import { bin } from '../repo.mjs';
import { runAsProgram, single, sum } from './tally.mjs';

/** Is everything formatted? */
export async function fmt({ write = false } = {}) {
  const prettier = [bin('prettier', 'bin/prettier.cjs'), write ? '--write' : '--check', '--log-level=warn', '.'];
  return sum([await single('cargo', ['fmt', ...(write ? [] : ['--check'])]), await single(process.execPath, prettier)]);
}

await runAsProgram(import.meta.filename, () => fmt({ write: process.argv.includes('--write') }));
