/** A header with what was measured on this device: how the model fits, and how fast it will be. */

import type { BuildName, EngineOptions } from '../options.js';
import type { Calls, DeviceRates, KernelRates, SourceSpec } from '../protocol.js';
import type { Inspected } from '../wasm/simd/sluice.js';
import type { Source } from './source.js';

/** Measures what is not known yet, and keeps it. */
export class Measured {
  readonly #header: Inspected;
  readonly #build: BuildName;
  readonly #kernels: Record<string, KernelRates>;
  readonly #storage: DeviceRates['storage'];
  readonly #bytesPerSecond: number | undefined;

  private constructor(header: Inspected, build: BuildName, rates: DeviceRates, kind: string, bytesPerSecond?: number) {
    this.#header = header;
    this.#build = build;
    this.#kernels = { ...rates.kernels };
    this.#storage = bytesPerSecond === undefined ? rates.storage : { ...rates.storage, [kind]: bytesPerSecond };
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** The storage behind `files` is measured where weights can stream from it and `rates` does not know it. */
  static async of(
    header: Inspected,
    build: BuildName,
    rates: DeviceRates,
    files: Source,
    kind: SourceSpec['kind'],
  ): Promise<Measured> {
    const bytesPerSecond =
      files.rereads && files.arriving !== true ? (rates.storage[kind] ?? (await storageRate(files))) : undefined;
    return new Measured(header, build, rates, kind, bytesPerSecond);
  }

  /** The plan and the expected speed under `options`. */
  fit(options: EngineOptions): Calls['refit']['reply'] {
    const fit = this.#header.fit(options, this.#kernelRates(options), this.#bytesPerSecond);
    return { fit, rates: { kernels: this.#kernels, storage: this.#storage } };
  }

  /** Two for each kernel, measured at the first time of asking; nothing for a model that cannot run. */
  #kernelRates(options: EngineOptions): Float64Array {
    const each = this.#header.kernels(options).flatMap((kernel, i) => {
      const rates = (this.#kernels[`${this.#build} ${kernel}`] ??= this.#header.measure(options, i));
      return [rates.decodeWeightsPerSecond, rates.prefillWeightsPerSecond];
    });
    return Float64Array.from(each);
  }
}

/** Bytes per second, by reading a few megabytes from the middle of the first file; undefined where that fails. */
async function storageRate(files: Source): Promise<number | undefined> {
  const size = files.size(0) ?? 0;
  const length = Math.min(PIECE_BYTES, size);
  const place = new Uint8Array(length);
  const first = Math.floor((size - length) / 2);
  const started = performance.now();
  let bytes = 0;
  let took = 0;
  try {
    while (length > 0 && took < ENOUGH_MS && bytes < MOST_BYTES) {
      const offset = first + bytes + length <= size ? first + bytes : first;
      if (files.readInto) files.readInto(0, offset, place);
      else await files.read(0, offset, length, copyTo(place));
      bytes += length;
      took = performance.now() - started;
    }
  } catch {
    return undefined; // it is said when the model is opened
  }
  return took > 0 ? (bytes / took) * 1000 : undefined;
}

/** The bytes are copied as the engine copies them. */
function copyTo(place: Uint8Array): (at: number, bytes: Uint8Array) => boolean {
  return (at, bytes) => {
    place.set(bytes, at);
    return true;
  };
}

/** About a slot of the ring. */
const PIECE_BYTES = 512 * 1024;
const MOST_BYTES = 16 * 1024 * 1024;
const ENOUGH_MS = 40;
