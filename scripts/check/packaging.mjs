// The package as npm would deliver it: its tarball and what it weighs, and the projects of tests/packaging that use it. The one that
// installs a framework, Next.js, runs on demand: `npm run check:packaging -- next`.
import { runSpecs } from './specs.mjs';
import { runAsProgram } from './tally.mjs';

/** Runs the specs; arguments name some of them. */
export async function packaging(names = []) {
  return runSpecs('tests/packaging', names, ['next.spec.mjs']);
}

await runAsProgram(import.meta.filename, () => packaging(process.argv.slice(2)));
