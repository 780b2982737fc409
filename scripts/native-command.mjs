// The native command `sluice`, built as users build it.
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { run } from './command.mjs';
import { targetDir } from './repo.mjs';

/** Runs it; resolves to what it printed. */
export const sluice = (...args) => runSluice(args, { capture: true });

/** Makes a model with the arguments of `make-model`, unless `file` is there. */
export async function makeModel(file, ...shape) {
  if ((await stat(file).catch(() => null)) === null) await runSluice(['make-model', ...shape, '--out', file]);
}

async function runSluice(args, options) {
  await (built ??= run('cargo', ['build', '--quiet', '--release', '--bins']));
  return run(path.join(targetDir, 'release/sluice'), args, options);
}

let built;
