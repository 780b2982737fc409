/**
 * The workers around an engine's worker in the builds with threads: who is started in which order, and that all are ready before
 * anything blocks. They end with the engine's worker, which has them let go of everything first: Chromium takes two seconds to end
 * a worker that is blocked, and its files are locked for as long.
 */

import { INTERNAL_MESSAGE, type PlainError, SluiceError, fromPlainError } from '../errors.js';
import type { BuildName, EngineOptions } from '../options.js';
import type { SourceSpec } from '../protocol.js';
import { type Desk, PortDesk } from './desk.js';
import { HiredWorker } from './hired.js';
import { type ThreadedWasm, engineMemory, joinThreads } from './wasm.js';

/** What the plan says of the memory. */
export interface Planned {
  /** Linear memory before anything of the model is in it. */
  baseBytes: number;
  /** Linear memory in all. */
  linearBytes: number;
}

/** What a helper is told: its task, once, and that it is to end. */
export type ToHelper =
  | { role: 'plan'; build: BuildName; folder: string | null; options: EngineOptions; port: MessagePort }
  | { role: 'read'; source: SourceSpec; planner: MessagePort; engine: MessagePort }
  | { role: 'end' }
  | {
      role: 'compute';
      build: BuildName;
      number: number;
      module: WebAssembly.Module;
      memory: WebAssembly.Memory;
      failedWord: number;
    };

/** What a helper says. */
export type FromHelper =
  /** `advice`: why the reader's weights cannot be stored. */
  | { kind: 'ready'; advice?: string }
  | { kind: 'planned'; planned: Planned; module: WebAssembly.Module }
  | { kind: 'progress'; loadedBytes: number; totalBytes: number }
  | { kind: 'failed'; error: PlainError }
  /** It has let go of everything, and says no more. */
  | { kind: 'ended' };

/** What a crew is for. */
export interface CrewTask {
  source: SourceSpec;
  options: EngineOptions;
  build: BuildName;
  folder: string | null;
  /** Threads that were found useful on this device before. */
  usefulThreads: number | null;
  /** Hears how far the download is of a file whose server cannot send parts. */
  onDownload: (loadedBytes: number, totalBytes: number) => void;
  /** Hears why weights cannot be stored, before anything is refused for it. */
  onAdvice: (why: string) => void;
  /** Gets what makes the reader let go of the files, should opening fail. */
  onReader: (end: () => Promise<void>) => void;
  /** Hears of a helper that breaks down when all were ready. */
  onFault: (thrown: unknown) => void;
}

/** An engine's module on its own memory, and the helpers at their places. */
export interface Crew {
  readonly wasm: ThreadedWasm;
  readonly desk: Desk;
  readonly planned: Planned;
  /** The task's options, with a number of threads. */
  readonly options: EngineOptions;
  /** Threads that were found useful just now. */
  readonly usefulThreads: number | null;
}

/** Starts everybody. When that fails, they are to be ended. */
export async function gather(task: CrewTask): Promise<Crew> {
  const { source, build, folder, usefulThreads, onDownload, onAdvice, onFault } = task;
  const options = withThreads(task.options, usefulThreads);
  const { threads } = options;
  const [planAsks, planReads, asks, reads] = [...ports(), ...ports()];
  // All are created before the first one works: what they load, they load side by side.
  const reader = new Helper(onDownload, onFault);
  const planner = new Helper();
  const others = Array.from({ length: sane(threads) - 1 }, () => new Helper(undefined, onFault));
  task.onReader(() => reader.end());

  const opening = reader.tell({ role: 'read', source, planner: planReads, engine: reads }, [planReads, reads]);
  const advised = opening.then((ready) => ready.kind === 'ready' && ready.advice !== undefined && onAdvice(ready.advice));
  advised.catch(() => undefined); // told by the race; here it must not count as unhandled
  const planning = planner.tell({ role: 'plan', build, folder, options, port: planAsks }, [planAsks]);
  const plan = await Promise.race([planning, advised.then(() => planning)]);
  planner.terminate();
  if (plan.kind !== 'planned') throw internal('plan');

  const { planned, module } = plan;
  const memory = engineMemory(build, planned.linearBytes);
  const wasm = await joinThreads(build, module, memory);
  releases.push(() => wasm.endTeam());
  const failedWord = wasm.leadTeam(threads, navigator.hardwareConcurrency);
  const joining = others.map((helper, i) => helper.tell({ role: 'compute', build, number: i + 1, module, memory, failedWord }));
  await Promise.all(joining);
  const chosen = isAuto(task.options) && usefulThreads === null ? wasm.chooseThreads() : null;
  for (const helper of chosen === null ? [] : others.splice(chosen - 1)) helper.terminate();
  const desk = new PortDesk(asks, memory);
  releases.push(() => desk.close());
  return { wasm, desk, planned, options, usefulThreads: chosen };
}

/** Has all helpers let go of what they hold; resolves when they have, or after a while, when no more can be done. */
export async function endHelpers(): Promise<void> {
  for (const release of releases.splice(0)) {
    try {
      release();
    } catch {
      // a module that has trapped does not answer
    }
  }
  await Promise.all([...helpers].map((helper) => helper.end()));
}

/** Wake helpers that are blocked. */
const releases: (() => void)[] = [];

/** Those that may hold something. */
const helpers = new Set<Helper>();

/** One helper. */
class Helper {
  readonly #worker = new HiredWorker('helper');
  readonly #onDownload: CrewTask['onDownload'] | undefined;
  readonly #onFault: ((thrown: unknown) => void) | undefined;
  readonly #ended: Promise<void>;
  #onEnded: () => void = () => undefined;
  #fault: SluiceError | undefined;
  #onAnswer = (answer: FromHelper | SluiceError): void => {
    if (answer instanceof SluiceError) this.#fault = answer; // before it was told anything
  };

  constructor(onDownload?: CrewTask['onDownload'], onFault?: (thrown: unknown) => void) {
    this.#onDownload = onDownload;
    this.#onFault = onFault;
    this.#ended = new Promise((resolve) => (this.#onEnded = resolve));
    this.#worker.onmessage = (message) => this.#hear(message as FromHelper); // a helper says nothing else
    this.#worker.onfault = (said) => {
      if (!said) this.#gone();
      this.#onAnswer(said ? internal('helper') : notStarted());
    };
    helpers.add(this);
  }

  /** Gives it its task; resolves to its first answer. What goes wrong later is for `onFault`. */
  tell(task: ToHelper, transfer: Transferable[] = []): Promise<FromHelper> {
    return new Promise((resolve, reject) => {
      if (this.#fault !== undefined) return reject(this.#fault);
      this.#onAnswer = (answer) => {
        if (answer instanceof SluiceError) return reject(answer);
        this.#onAnswer = (later) => {
          if (later instanceof SluiceError) this.#onFault?.(later);
        };
        resolve(answer);
      };
      this.#worker.postMessage(task, transfer);
    });
  }

  #hear(said: FromHelper): void {
    switch (said.kind) {
      case 'progress':
        return this.#onDownload?.(said.loadedBytes, said.totalBytes);
      case 'failed':
        return this.#onAnswer(fromPlainError(said.error));
      case 'ended':
        return this.#gone();
      case 'ready':
      case 'planned':
        this.#onAnswer(said);
    }
  }

  /** Has it let go of everything, and resolves then; one that does not answer is not waited for any longer. */
  async end(): Promise<void> {
    this.#worker.postMessage({ role: 'end' } satisfies ToHelper);
    const late = setTimeout(() => this.terminate(), END_MS);
    await this.#ended;
    clearTimeout(late);
  }

  terminate(): void {
    this.#worker.terminate();
    this.#gone();
  }

  #gone(): void {
    helpers.delete(this);
    this.#onEnded();
  }
}

/** `options` with a number of threads: the given one, what was found useful before, or as many as a measurement is worth for. */
export function withThreads(options: EngineOptions, usefulThreads: number | null): EngineOptions & { threads: number } {
  const most = Math.max(1, Math.min(navigator.hardwareConcurrency, MOST_THREADS));
  // What is no number is for Rust to refuse.
  const threads = isAuto(options) ? (usefulThreads ?? most) : (options.threads as number);
  return { ...options, threads };
}

function isAuto({ threads = 'auto' }: EngineOptions): boolean {
  return threads === 'auto';
}

/** What is no number of threads is for Rust to refuse. */
function sane(threads: unknown): number {
  return typeof threads === 'number' && threads >= 1 && threads <= MOST_ASKED ? Math.floor(threads) : 1;
}

function ports(): [MessagePort, MessagePort] {
  const { port1, port2 } = new MessageChannel();
  return [port1, port2];
}

function internal(who: string): SluiceError {
  return new SluiceError('internal', INTERNAL_MESSAGE, { thrown: who });
}

function notStarted(): SluiceError {
  const message =
    "the engine's helpers could not be started: the file worker/helper.js is missing beside worker/main.js (see the option 'assets'), " +
    'or the page forbids workers (Content-Security-Policy worker-src)';
  return new SluiceError('source_failed', message, { reason: 'worker' });
}

/** A piece of work takes a small part of it; the page waits a little longer (`LET_GO_MS` of `launch.ts`). */
const END_MS = 400;
/** More were of no use anywhere: memory is the limit. */
const MOST_THREADS = 6;
/** `MAX_THREADS` of `src/bindings/options.rs`. */
const MOST_ASKED = 64;
