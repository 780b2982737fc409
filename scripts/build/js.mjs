// The TypeScript half of the package: js/ → pkg/*.js and *.d.ts by tsc, one file out for each file in.
import { access, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../command.mjs';
import { bin, pkgDir, root } from '../repo.mjs';

/** The page's half and the worker's half see different globals, so each has its own project; Node's goes with the worker's, whose own
 * project only checks it. The worker's comes first: the types of the wasm modules point at files that the other one writes. */
export const projects = ['js/node/tsconfig.json', 'tsconfig.json'];

/** Runs the TypeScript compiler on a project. */
export const tsc = (project, ...args) =>
  run(process.execPath, [bin('typescript', 'bin/tsc'), '-p', path.join(root, project), ...args]);

/** Emits the package's JavaScript; what an earlier build left of deleted sources goes away. */
export async function buildJs() {
  const started = performance.now();
  await access(pkgDir);
  for (const entry of await readdir(pkgDir)) {
    if (entry !== 'wasm') await rm(path.join(pkgDir, entry), { recursive: true });
  }
  for (const project of projects) await tsc(project);
  console.log(`build: js (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}
