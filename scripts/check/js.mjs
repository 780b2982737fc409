// The TypeScript half in Node: compiled by tsc beside its tests, then `node --test`.
import { readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { tsc } from '../build/js.mjs';
import { root } from '../repo.mjs';
import { counted, runAsProgram } from './tally.mjs';

const outDir = path.join(root, 'target/js-tests');

/** Compiles and runs tests/js/*.test.ts. */
export async function js() {
  await rm(outDir, { recursive: true, force: true });
  await tsc('tests/js/tsconfig.json');
  await writeFile(path.join(outDir, 'package.json'), '{ "name": "sluice-llm", "type": "module", "exports": "./js/index.js" }\n');
  const folder = path.join(outDir, 'tests/js');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.test.js')).map((name) => path.join(folder, name));
  return counted(process.execPath, ['--enable-source-maps', '--test', '--test-reporter=spec', ...files]);
}

await runAsProgram(import.meta.filename, js);
