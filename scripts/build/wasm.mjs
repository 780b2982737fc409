// One wasm build: cargo → wasm-bindgen → wasm-opt, into pkg/wasm/NAME/; its glue goes among the modules that js.mjs bundles. Steps whose
// input has not changed are not repeated.
import { createHash } from 'node:crypto';
import { appendFile, cp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../command.mjs';
import { bin, modulesDir, pkgDir, root } from '../repo.mjs';
import { buildTargetDir, builds, optFeatures, published, rustflags } from './builds.mjs';
import { WASM_TARGET, findBindgen, wasmToolchain } from './toolchain.mjs';

/** The version of wasm-bindgen that Cargo.lock names: crate and CLI must be the same. */
export async function bindgenVersion() {
  const lock = await readFile(path.join(root, 'Cargo.lock'), 'utf8');
  const found = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock);
  if (!found) throw new Error('Cargo.lock names no wasm-bindgen: run `cargo check` once');
  return found[1];
}

/** cargo's arguments and environment for a build of this name: `cargoFor('simd').then(({ cargo, args, env }) => run(cargo, ['build', ...args], { env }))`. */
export async function cargoFor(name) {
  const toolchain = await wasmToolchain(builds[name]);
  if (!toolchain) throw new Error('no Rust for wasm32 is here: run `npm run setup`');
  const { cargo, args, env } = toolchain;
  const flags = [...rustflags(name), ...toolchain.rustflags].join(' ');
  return {
    cargo,
    args: ['--target', WASM_TARGET, ...args],
    env: { ...env, RUSTFLAGS: flags, CARGO_TARGET_DIR: buildTargetDir(name) },
  };
}

/** Where the glue of a build is: the modules find it as `wasm/NAME/sluice.js`. */
export const glueDir = (name) => path.join(modulesDir, 'wasm', name);

/** Builds one module and its glue; says in a line what came out. */
export async function buildWasm(name) {
  const started = performance.now();
  const { cargo, args, env } = await cargoFor(name);
  await run(cargo, ['build', '--quiet', '--profile', 'wasm', '--lib', ...args], { env });
  const wasm = path.join(buildTargetDir(name), WASM_TARGET, 'wasm', 'sluice.wasm');

  const outDir = path.join(pkgDir, 'wasm', name);
  const version = await bindgenVersion();
  const stampFile = path.join(buildTargetDir(name), 'packaged');
  const stamp = createHash('sha256')
    .update(await readFile(wasm))
    .update(`${version} ${OPTIMISE} ${optFeatures(name)}`)
    .digest('hex');
  const finished = path.join(outDir, 'sluice_bg.wasm');
  const current = await readFile(stampFile, 'utf8').catch(() => '');
  const files = [finished, path.join(glueDir(name), 'sluice.js')];
  const there = (await Promise.all(files.map((file) => stat(file).catch(() => null)))).every(Boolean);
  if (current !== `${stamp} ${outDir}` || !there) {
    await rm(stampFile, { force: true });
    await packageWasm(name, wasm, outDir, version);
    await writeFile(stampFile, `${stamp} ${outDir}`);
  }
  const { size } = await stat(finished);
  console.log(`build: ${name}: ${(size / 1000).toFixed(0)} kB of wasm (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

/**
 * Where only some of the modules were built, the glue of one of them stands in for the others', without which the workers are not
 * bundled: their wasm is missing, and opening a model with them fails.
 */
export async function standIn(names) {
  for (const name of published) {
    if (await stat(glueDir(name)).catch(() => null)) continue;
    await cp(glueDir(names[0]), glueDir(name), { recursive: true });
    console.log(`build: ${name}: not built; the glue of ${names[0]} stands in for its own`);
  }
}

async function packageWasm(name, wasm, outDir, version) {
  const bindgen = await findBindgen('wasm-bindgen', version);
  if (!bindgen) throw new Error(`wasm-bindgen ${version} is not here: run \`npm run setup\``);
  for (const folder of [outDir, glueDir(name)]) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
  }
  await run(bindgen, ['--target', 'web', '--out-dir', glueDir(name), '--out-name', 'sluice', wasm]);
  if (builds[name].threads) await tellMore(glueDir(name));
  const plain = path.join(glueDir(name), 'sluice_bg.wasm');
  const finished = path.join(outDir, 'sluice_bg.wasm');
  await run(process.execPath, [bin('binaryen', 'bin/wasm-opt'), ...OPTIMISE, ...optFeatures(name), plain, '-o', finished]);
  await rm(plain);
}

// A shared memory is made by whoever starts the module, with at least as many pages as the module asks for; only the module and the
// memory that the glue would make by itself know how many. The workers that join it are given the compiled module, which the glue keeps to itself.
async function tellMore(folder) {
  const glue = path.join(folder, 'sluice.js');
  const text = await readFile(glue, 'utf8');
  const found = /new WebAssembly\.Memory\(\{initial:(\d+),maximum:\d+,shared:true\}\)/.exec(text);
  if (!found) throw new Error('the glue of wasm-bindgen makes no shared memory: has its text changed?');
  if (!/^ +wasmModule = module;$/m.test(text)) throw new Error('the glue of wasm-bindgen keeps no module: has its text changed?');
  await appendFile(glue, `\nexport const memoryPages = ${found[1]};\nexport const compiledModule = () => wasmModule;\n`);
  const types = [
    '/** Pages of 64 KiB that the module asks for. */',
    'export const memoryPages: number;',
    '/** The module, once it has been started. */',
    'export const compiledModule: () => WebAssembly.Module;',
  ];
  await appendFile(path.join(folder, 'sluice.d.ts'), `\n${types.join('\n')}\n`);
}

// A function with one caller stays on its own unless it is small. Else all kernels end up in their dispatcher, and V8 takes 40 MB to
// compile that when one of them gets hot.
const OPTIMISE = ['-O3', '--one-caller-inline-max-function-size', '50'];
