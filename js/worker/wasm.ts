/** Starts the package's wasm modules: those of one thread as they are, those with threads on a shared memory that is given. */

import startRelaxed, * as relaxed from '../wasm/relaxed/sluice.js';
import startRelaxedThreads, * as relaxedThreads from '../wasm/relaxed-threads/sluice.js';
import startSimd, * as simd from '../wasm/simd/sluice.js';
import startSimdThreads, * as simdThreads from '../wasm/simd-threads/sluice.js';
import { SluiceError } from '../errors.js';
import type { BuildName, EngineOptions } from '../options.js';
import type { Planned } from './crew.js';
import type { Desk } from './desk.js';
import type { Host } from './host.js';
import type { Source } from './source.js';
import { platform } from './platform.js';

/** The exports of a module that all builds have. */
export type Wasm = Omit<typeof simd, 'default' | 'initSync'>;

/** The exports of a module with threads: those of all builds, two that `scripts/build/wasm.mjs` adds, and those of `src/bindings/threads.rs`. */
export interface ThreadedWasm extends Wasm {
  readonly memoryPages: number;
  compiledModule(): WebAssembly.Module;
  plan(host: Host, source: Source, options: EngineOptions, call: simd.Call): Promise<Planned>;
  openByDesk(host: Host, desk: Desk, options: EngineOptions, call: simd.Call, baseBytes: number): Promise<simd.Session>;
  leadTeam(nThreads: number, nCores: number): number;
  serveTeam(number: number): void;
  chooseThreads(): number;
  endTeam(): void;
}

/** What starts a module with threads. Without a module it fetches its own file. */
type StartThreads = (options: {
  module_or_path?: URL | WebAssembly.Module;
  memory: WebAssembly.Memory;
  thread_stack_size?: number;
}) => Promise<unknown>;

/** Fetches, compiles and starts `build`; `folder` holds the builds where they are not beside this file. */
export async function startWasm(build: BuildName, folder: string | null): Promise<Wasm> {
  if (hasThreads(build)) return (await startThreads(build, planningMemory(build), folder)).wasm;
  const [start, exports] = build === 'relaxed' ? [startRelaxed, relaxed] : [startSimd, simd];
  await reported(build, async () => start(await moduleIn(build, folder)));
  return exports;
}

/** Fetches, compiles and starts a build with threads on `memory`; gives the compiled module for `joinThreads`. */
export async function startThreads(
  build: BuildName,
  memory: WebAssembly.Memory,
  folder: string | null,
): Promise<{ wasm: ThreadedWasm; module: WebAssembly.Module }> {
  const [start, exports] = threaded(build);
  await reported(build, async () => start({ ...(await moduleIn(build, folder)), memory }));
  return { wasm: exports, module: exports.compiledModule() };
}

/** Starts a compiled build with threads on a memory that other workers may share. */
export async function joinThreads(
  build: BuildName,
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
): Promise<ThreadedWasm> {
  const [start, exports] = threaded(build);
  await reported(build, () => start({ module_or_path: module, memory, thread_stack_size: STACK_BYTES }));
  return exports;
}

/** Does the build compute in several threads? */
export function hasThreads(build: BuildName): boolean {
  return build.endsWith('-threads');
}

/** A memory of exactly the planned size. */
export function engineMemory(build: BuildName, linearBytes: number): WebAssembly.Memory {
  return sharedMemory(build, Math.min((linearBytes + TEXT_BYTES) / PAGE_BYTES, MOST_PAGES));
}

/** A memory for reading a header: it grows as far as that takes. */
export function planningMemory(build: BuildName): WebAssembly.Memory {
  return sharedMemory(build, PLANNING_BYTES / PAGE_BYTES);
}

function sharedMemory(build: BuildName, maximum: number): WebAssembly.Memory {
  const [, { memoryPages }] = threaded(build);
  return new WebAssembly.Memory({ initial: memoryPages, maximum, shared: true });
}

function threaded(build: BuildName): [StartThreads, ThreadedWasm] {
  // Unknown at first: their classes are those of the other builds declared once more, and in a partial build the glue is a stand-in.
  const module: readonly unknown[] =
    build === 'relaxed-threads' ? [startRelaxedThreads, relaxedThreads] : [startSimdThreads, simdThreads];
  return module as [StartThreads, ThreadedWasm];
}

/** Where the module is, or what it is; undefined where it is beside its glue. */
async function moduleIn(
  build: BuildName,
  folder: string | null,
): Promise<{ module_or_path: URL | WebAssembly.Module } | undefined> {
  if (platform.compiledWasm !== undefined) return { module_or_path: await platform.compiledWasm(build, folder) };
  return folder === null ? undefined : { module_or_path: new URL(`${build}/sluice_bg.wasm`, withSlash(folder)) };
}

async function reported(build: BuildName, start: () => Promise<unknown>): Promise<void> {
  try {
    await start();
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

const PAGE_BYTES = 65536;
const MOST_PAGES = 65536;

/** Address space for texts that are larger than a plan foresees: they are refused when they do not fit the context, and not by a trap. */
const TEXT_BYTES = 256 * 1024 * 1024;

/** Address space for reading a header, hardly any of it ever used. */
const PLANNING_BYTES = 1024 * 1024 * 1024;

/** The stack of a compute worker; `STACK_BYTES` of `src/bindings/options.rs` prices it. */
const STACK_BYTES = 256 * 1024;
