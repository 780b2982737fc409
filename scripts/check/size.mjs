// `npm run size`: what a visitor downloads, raw and compressed as servers send it: each wasm module, and the package's JavaScript, in which
// their glue is. Fails where a number is over its budget in scripts/budgets.json.
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { published } from '../build/builds.mjs';
import { pkgDir, root } from '../repo.mjs';
import { runAsProgram } from './tally.mjs';

/** Prints the table and compares it with the budgets. */
export async function size() {
  const { download } = JSON.parse(await readFile(path.join(root, 'scripts/budgets.json'), 'utf8'));
  const js = total(await Promise.all((await ownFiles()).map(measure)));
  const rows = [['JavaScript', js, download.js]];
  for (const name of published) {
    const wasm = await measure(path.join(pkgDir, 'wasm', name, 'sluice_bg.wasm'));
    rows.push([name, wasm, download[name]]);
    rows.push([`${name} + JavaScript`, total([js, wasm]), download.picked]);
  }
  let failed = 0;
  console.log(row('', 'raw', 'gzip', 'brotli', 'brotli at most'));
  for (const [name, { raw, gzip, brotli }, allowed] of rows) {
    const over = !(brotli <= allowed);
    console.log(`${row(name, raw, gzip, brotli, allowed)}${over ? '  over budget' : ''}`);
    if (over) failed += 1;
  }
  return { passed: rows.length - failed, failed };
}

/** The package's scripts; what only Node loads is not for visitors. */
async function ownFiles() {
  const entries = await readdir(pkgDir, { recursive: true });
  const own = entries.filter((name) => name.endsWith('.js') && !name.startsWith('node'));
  return own.map((name) => path.join(pkgDir, name));
}

async function measure(file) {
  const bytes = await readFile(file);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return {
    raw: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    brotli: brotliCompressSync(bytes, { params }).length,
  };
}

function total(sizes) {
  const sum = (key) => sizes.reduce((all, size) => all + size[key], 0);
  return { raw: sum('raw'), gzip: sum('gzip'), brotli: sum('brotli') };
}

function row(name, ...numbers) {
  return `${name.padEnd(28)}${numbers.map((number) => String(number).padStart(16)).join('')}`;
}

await runAsProgram(import.meta.filename, size);
