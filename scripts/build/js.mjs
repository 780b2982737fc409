// The TypeScript half of the package: js/ → single modules by tsc, beside the glue of the wasm modules; these → the few files of pkg/ by
// esbuild, and the declarations that its users see.
import { access, copyFile, mkdir, readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../command.mjs';
import { bin, modulesDir, pkgDir, root } from '../repo.mjs';
import { bundle } from './bundle.mjs';

/** The page's half and the worker's half see different globals, so each has its own project; Node's goes with the worker's, whose own
 * project only checks it. The worker's comes first: the types of the wasm modules point at files that the other one writes. */
export const projects = ['js/node/tsconfig.json', 'tsconfig.json'];

/** Runs the TypeScript compiler on a project. */
export const tsc = (project, ...args) =>
  run(process.execPath, [bin('typescript', 'bin/tsc'), '-p', path.join(root, project), ...args]);

/** Emits the package's JavaScript and its declarations; what an earlier build left of deleted sources goes away. */
export async function buildJs() {
  const started = performance.now();
  await access(path.join(modulesDir, 'wasm')).catch(() => {
    throw new Error('the wasm modules have no glue yet: run `npm run build` once');
  });
  for (const folder of [modulesDir, pkgDir]) await clearBesideWasm(folder);
  for (const project of projects) await tsc(project);
  await bundle();
  await copyDeclarations(['index.d.ts', 'openai.d.ts']);
  console.log(`build: js (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

async function clearBesideWasm(folder) {
  for (const entry of await readdir(folder)) {
    if (entry !== 'wasm') await rm(path.join(folder, entry), { recursive: true });
  }
}

/** Copies declaration files and those that they name, and so on. */
async function copyDeclarations(names) {
  const all = new Set(names);
  for (const name of all) {
    const text = await readFile(path.join(modulesDir, name), 'utf8');
    for (const [, named] of text.matchAll(/\b(?:from |import\()['"](\.[^'"]+)\.js['"]/g)) {
      all.add(path.join(path.dirname(name), `${named}.d.ts`));
    }
    await mkdir(path.dirname(path.join(pkgDir, name)), { recursive: true });
    await copyFile(path.join(modulesDir, name), path.join(pkgDir, name));
  }
}
