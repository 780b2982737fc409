/**
 * The entry of the workers that help an engine's worker: one that plans and goes, one that reads, and those that compute. The
 * first message says which it is.
 */

import { toPlainError } from '../errors.js';
import { CopiedSource, serveCopies } from './copies.js';
import { type ToReader, serveDesk } from './desk.js';
import { makeHost } from './host.js';
import { employer } from './hired.js';
import { openSource } from './open-source.js';
import { Recorded } from './recorded.js';
import type { Source } from './source.js';
import type { FromHelper, ToHelper } from './crew.js';
import { type ThreadedWasm, joinThreads, planningMemory, startThreads } from './wasm.js';

let wasm: ThreadedWasm | undefined;
/** What a reader reads. */
let opening: Promise<Source> | undefined;
/** Who asks it: nothing else here keeps these ports from being collected. */
const served: MessagePort[] = [];

employer.listen((message) => {
  // crew.ts says nothing else
  run(message as ToHelper).catch((thrown: unknown) => say({ kind: 'failed', error: toPlainError(thrown) }));
});

async function run(task: ToHelper): Promise<void> {
  switch (task.role) {
    case 'plan':
      return say(await plan(task));
    case 'read':
      return say(await read(task));
    case 'compute':
      await compute(task);
      return end();
    case 'end':
      return end();
  }
}

/** Lets go of everything, and waits for the end of the engine's worker. */
async function end(): Promise<void> {
  const source = await opening?.catch(() => undefined);
  source?.close?.();
  say({ kind: 'ended' });
}

/** Reads the header in a small memory of its own, which goes with this worker. */
async function plan({ build, folder, options, port }: ToHelper & { role: 'plan' }): Promise<FromHelper> {
  const memory = planningMemory(build);
  const started = await startThreads(build, memory, folder);
  wasm = started.wasm;
  const call = new wasm.Call();
  const planned = await wasm.plan(
    makeHost(() => undefined),
    await CopiedSource.open(port),
    options,
    call,
  );
  return { kind: 'planned', planned, module: started.module };
}

/** Opens the source, then reads for who plans, and for the engine's desk. */
async function read({ source: spec, planner, engine }: ToHelper & { role: 'read' }): Promise<FromHelper> {
  opening = openSource(spec, (loadedBytes, totalBytes) => {
    say({ kind: 'progress', loadedBytes, totalBytes });
  });
  const files = await opening;
  const source: Source = files.rereads || files.readInto ? files : new Recorded(files);
  served.push(planner, engine);
  serveCopies(source, planner);
  engine.onmessage = ({ data }: MessageEvent<ToReader>) => {
    if (data.kind === 'order') return source.willUse?.(data.files, data.offsets, data.lengths);
    serveDesk(source, data, engine).catch((thrown: unknown) => say({ kind: 'failed', error: toPlainError(thrown) }));
  };
  return { kind: 'ready', ...(files.advice !== undefined && { advice: files.advice }) };
}

/** Joins the engine's memory and says so, then computes until the team does without it. */
async function compute({ build, number, module, memory, failedWord }: ToHelper & { role: 'compute' }): Promise<void> {
  wasm = await joinThreads(build, module, memory);
  say({ kind: 'ready' });
  try {
    wasm.serveTeam(number);
  } catch (thrown) {
    // The engine may be waiting for this thread, and sees only words.
    Atomics.store(new Int32Array(memory.buffer), failedWord >> 2, 1);
    throw thrown;
  }
}

function say(message: FromHelper): void {
  employer.postMessage(message);
}
