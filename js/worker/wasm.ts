/** Starts one of the package's wasm modules. */

import startRelaxed, * as relaxed from '../wasm/relaxed/sluice.js';
import startSimd, * as simd from '../wasm/simd/sluice.js';
import { SluiceError } from '../errors.js';
import type { BuildName } from '../options.js';

/** The exports of a module; all builds have the same. */
export type Wasm = typeof simd;

/** Fetches, compiles and starts `build`; `folder` holds the builds where they are not beside this file. */
export async function startWasm(build: BuildName, folder: string | null): Promise<Wasm> {
  const [start, exports] = build === 'relaxed' ? [startRelaxed, relaxed] : [startSimd, simd];
  try {
    await (folder === null ? start() : start({ module_or_path: new URL(`${build}/sluice_bg.wasm`, withSlash(folder)) }));
    return exports;
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    const message =
      `the engine's own file ${build}/sluice_bg.wasm could not be started (${why}): check that it is served where the package looks for it ` +
      "(see the option 'assets'), and that the page's Content-Security-Policy allows 'wasm-unsafe-eval'";
    throw new SluiceError('source_failed', message, { reason: 'wasm', build });
  }
}

function withSlash(folder: string): string {
  return folder.endsWith('/') ? folder : `${folder}/`;
}
