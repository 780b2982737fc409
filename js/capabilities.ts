/** What this browser can do, by pure probes: nothing is fetched, no permission is asked. */

import type { BuildName } from './options.js';

/** What was found, and what it means for the engine. */
export interface Capabilities {
  /** WebAssembly with SIMD128, without which the engine does not run. */
  simd: boolean;
  /** Relaxed SIMD: faster integer kernels, the same bits. */
  relaxedSimd: boolean;
  /** Is the page cross-origin isolated, with shared memory? */
  crossOriginIsolated: boolean;
  /** Compute threads and a reader on shared memory. */
  threads: boolean;
  /** Origin private file system. */
  opfs: boolean;
  /** The build that `build: 'auto'` takes; `null` when the engine cannot run. */
  build: BuildName | null;
  /** Sentences that say why something better is not used. */
  reasons: readonly string[];
}

/** Probes the browser. */
export function capabilities(): Capabilities {
  const simd = validates(SIMD_PROBE);
  const relaxedSimd = simd && validates(RELAXED_PROBE);
  const isolated = globalThis.crossOriginIsolated === true && typeof SharedArrayBuffer === 'function';
  const opfs = typeof globalThis.navigator?.storage?.getDirectory === 'function';
  const reasons: string[] = [];
  if (!simd) reasons.push('WebAssembly SIMD is missing: the engine needs Chrome 91, Firefox 89, Safari 16.4 or later');
  else if (!relaxedSimd) reasons.push('relaxed SIMD is missing: integer kernels run at SIMD128 speed');
  const asyncWait = typeof (Atomics as { waitAsync?: unknown }).waitAsync === 'function';
  const threads = isolated && asyncWait;
  if (simd && globalThis.crossOriginIsolated === undefined) {
    reasons.push('one compute thread: outside a browser the engine runs in one worker thread');
  } else if (simd && !isolated) {
    reasons.push(
      'one compute thread: the page is not cross-origin isolated, so it has no shared memory ' +
        '(it needs the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp)',
    );
  } else if (simd && !threads) {
    reasons.push('one compute thread: Atomics.waitAsync is missing (it came with Chrome 87, Safari 16.4, Firefox 145)');
  }
  const kernels = relaxedSimd ? 'relaxed' : 'simd';
  return {
    simd,
    relaxedSimd,
    crossOriginIsolated: isolated,
    opfs,
    threads,
    build: simd ? (threads ? `${kernels}-threads` : kernels) : null,
    reasons,
  };
}

function validates(functionBody: readonly number[]): boolean {
  if (typeof WebAssembly !== 'object') return false;
  // One function of type () -> v128, and its body.
  const type = [1, 5, 1, 0x60, 0, 1, 0x7b];
  const code = [10, functionBody.length + 4, 1, functionBody.length + 2, 0, ...functionBody, 0x0b];
  return WebAssembly.validate(Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...type, 3, 2, 1, 0, ...code]));
}

/** `i32.const 0, i8x16.splat` */
const SIMD_PROBE = [0x41, 0, 0xfd, 0x0f];

/** `i32.const 0, i8x16.splat` three times, `i32x4.relaxed_dot_i8x16_i7x16_add_s` (0xfd 0x113) */
const RELAXED_PROBE = [...SIMD_PROBE, ...SIMD_PROBE, ...SIMD_PROBE, 0xfd, 0x93, 0x02];
