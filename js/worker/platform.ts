/** What the worker has where it is not a browser's; whoever starts it there fills this in before the worker's entry is evaluated. */

import type { BuildName } from '../options.js';
import type { Source } from './source.js';

/** Nothing of it is there in a browser. */
export interface Platform {
  /** Bytes of memory of the device. */
  deviceBytes?: number;
  /** A build's wasm module, where it has no address that can be fetched; `folder` as in the option `assets.wasm`. */
  compiledWasm?: (build: BuildName, folder: string | null) => Promise<WebAssembly.Module>;
  /** Calls back when the messages that have arrived were handled, where a message to oneself would come before them. */
  afterMessages?: (resume: () => void) => void;
  /** Opens local files by their paths. */
  openFiles?: (paths: readonly string[]) => Source;
}

/** This worker's. */
export const platform: Platform = {};
