// The wasm modules one crate is built into. Each has its own flags and therefore its own target directory.
import path from 'node:path';
import { targetDir } from '../repo.mjs';

/** Linear memory that a shared module declares at most: the engine passes its own, smaller memory. */
const MAX_SHARED_BYTES = 4 * 2 ** 30 - 65536;

/** Name → what the browser must have. `scalar` is for tests only: it is never part of the package. */
export const builds = {
  scalar: { relaxed: false, simd: false, threads: false },
  simd: { relaxed: false, simd: true, threads: false },
  relaxed: { relaxed: true, simd: true, threads: false },
  'simd-threads': { relaxed: false, simd: true, threads: true },
  'relaxed-threads': { relaxed: true, simd: true, threads: true },
};

/** The builds that `npm run build` puts into the package. */
export const published = ['simd', 'relaxed', 'simd-threads', 'relaxed-threads'];

/** RUSTFLAGS of a build: they replace those of `.cargo/config.toml`. */
export function rustflags(name) {
  const { relaxed, simd, threads } = builds[name];
  const features = [simd ? '+simd128' : '-simd128'];
  if (relaxed) features.push('+relaxed-simd');
  if (threads) features.push('+atomics', '+bulk-memory', '+mutable-globals');
  const flags = [`-Ctarget-feature=${features.join(',')}`];
  if (threads) {
    const tls = ['__wasm_init_tls', '__tls_size', '__tls_align', '__tls_base'];
    const link = ['--shared-memory', '--import-memory', `--max-memory=${MAX_SHARED_BYTES}`];
    for (const arg of [...link, ...tls.map((symbol) => `--export=${symbol}`)]) flags.push(`-Clink-arg=${arg}`);
  }
  return flags;
}

/** Binaryen's feature flags for a build: what rustc's wasm32 target uses by default, and what the build adds. */
export function optFeatures(name) {
  const { relaxed, simd, threads } = builds[name];
  const features = ['bulk-memory', 'mutable-globals', 'sign-ext', 'nontrapping-float-to-int', 'reference-types', 'multivalue'];
  if (simd) features.push('simd');
  if (relaxed) features.push('relaxed-simd');
  if (threads) features.push('threads');
  return features.map((feature) => `--enable-${feature}`);
}

/** The build's own cargo target directory. */
export const buildTargetDir = (name) => path.join(targetDir, 'wasm', name);
