/** The worker's entry: answers the calls of `protocol.ts` with the wasm module. */

import { INTERNAL_MESSAGE, SluiceError, toPlainError } from '../errors.js';
import { holdLife } from '../life.js';
import type { BuildName, Chunk, EngineOptions, TokenLogprob } from '../options.js';
import type { Calls, News, SourceSpec } from '../protocol.js';
import { type Handlers, Server } from '../rpc-server.js';
import type { Answered, Call, Session } from '../wasm/simd/sluice.js';
import { endHelpers, gather, withThreads } from './crew.js';
import { type Host, makeHost } from './host.js';
import { Measured } from './measured.js';
import { WEB_PAGE } from './range-response.js';
import { forget, openForHeader, openSource } from './open-source.js';
import type { Source } from './source.js';
import { type Wasm, hasThreads, startWasm } from './wasm.js';

let wasm: Wasm | undefined;
let endReader: (() => Promise<void>) | undefined;
/** What an engine without helpers reads. */
let files: Source | undefined;
/** Why weights cannot be stored. */
let advice: string | undefined;
let session: Session | undefined;
let host: Host | undefined;
let measured: Measured | undefined;
/** What an inspection plans with, as `open` would. */
let resolved = (options: EngineOptions): EngineOptions => options;

const handlers: Handlers<Calls> = {
  async open(request, { signal }) {
    const told = (host = makeHost((news) => server.tell(news)));
    try {
      return await (hasThreads(request.build) ? openWithThreads(request, told, signal) : openAlone(request, told, signal));
    } catch (thrown) {
      throw await refused(request.source, thrown);
    }
  },

  async inspect({ source, options: given, build, wasm: folder, rates, usefulThreads }, { signal }) {
    if (hasThreads(build)) resolved = (options) => withThreads(options, usefulThreads);
    const options = resolved(given);
    const module = await start(build, folder);
    const told = makeHost((news) => server.tell(news));
    const files = await openForHeader(source, downloadsTo(told));
    const header = await running(signal, (call) => module.inspect(told, files, options, call));
    measured = await Measured.of(header, build, rates, files, source.kind);
    files.close?.();
    return { card: header.card(), ...measured.fit(options) };
  },

  refit({ options }) {
    if (measured === undefined) throw new SluiceError('misuse', 'no model was inspected');
    return Promise.resolve(measured.fit(resolved(options)));
  },

  async generate({ prompt, options }, tools) {
    return answer(tools, (engine, call, onChunk) => engine.generate(prompt, options, call, onChunk));
  },

  async chat({ messages, chat, options }, tools) {
    return answer(tools, (engine, call, onChunk) => engine.chat(messages, chat, options, call, onChunk));
  },

  async renderChat({ messages, chat }) {
    return Promise.resolve(opened().renderChat(messages, chat));
  },

  watch({ framesPerSecond }) {
    host?.watch(framesPerSecond);
    return Promise.resolve(null);
  },

  async embed({ texts, options }, { signal }) {
    const engine = opened();
    let [tokens, done] = [0, 0];
    let found, vectors;
    do {
      // So what a call takes of the engine's memory does not grow with the number of texts.
      const some = texts.slice(done, done + TEXTS_AT_ONCE);
      found = await running(signal, (call) => engine.embed(some, options, call));
      vectors ??= new Float32Array(texts.length * found.width);
      vectors.set(found.vectors, done * found.width);
      tokens += found.tokens;
      done += TEXTS_AT_ONCE;
    } while (done < texts.length);
    tellStats(engine);
    return { vectors, width: found.width, tokens };
  },

  async tokenize({ text, addSpecial, parseSpecial }) {
    return Promise.resolve({ ids: opened().tokenize(text, addSpecial, parseSpecial) });
  },

  async detokenize({ ids, special }) {
    return Promise.resolve({ text: opened().detokenize(ids, special) });
  },

  async logits({ ids, chunk }, { signal, item }) {
    const engine = opened();
    await running(signal, (call) => engine.logits(ids, chunk, call, (row) => hold(call, item(row, [row.buffer]))));
    tellStats(engine);
    return null;
  },
};

const server = new Server<Calls, News>(self, handlers, die, letGo);
server.tell({ kind: 'alive', lock: null });
holdLife((lock) => server.tell({ kind: 'alive', lock }));

// A trap inside a future of the module surfaces here and not in the promise that waits for it.
self.addEventListener('error', (event) => {
  event.preventDefault();
  die(event.error);
});
self.addEventListener('unhandledrejection', (event) => {
  event.preventDefault();
  die(event.reason);
});

/** Gives back what others may wait for. */
async function letGo(): Promise<void> {
  files?.close?.();
  await endHelpers();
}

/** The module is broken and cannot be trusted with another call. */
function die(thrown: unknown): void {
  const name = thrown instanceof Error ? thrown.name : typeof thrown;
  const error = new SluiceError('internal', INTERNAL_MESSAGE, { thrown: name, place: panicPlace() });
  void server.die(error).finally(() => self.close());
}

function panicPlace(): string {
  try {
    return wasm?.panicPlace() ?? 'unknown';
  } catch {
    return 'unknown'; // a module whose memory is spoilt cannot say
  }
}

/** Opens the model in this worker, which does everything. */
async function openAlone(
  { source, options, build, wasm: folder }: Calls['open']['request'],
  host: Host,
  signal: AbortSignal,
): Promise<Calls['open']['reply']> {
  const module = await start(build, folder);
  const opening = await openSource(source, downloadsTo(host));
  files = opening;
  advice = opening.advice;
  session = await running(signal, (call) => module.open(host, opening, options, call));
  return { facts: session.facts(), stats: session.stats(), usefulThreads: null };
}

/** Opens the model in a build with threads: helpers plan, read and compute. */
async function openWithThreads(
  request: Calls['open']['request'],
  host: Host,
  signal: AbortSignal,
): Promise<Calls['open']['reply']> {
  if (wasm !== undefined) throw alreadyOpen();
  const { wasm: folder, ...task } = request;
  const onAdvice = (why: string): void => void (advice = why);
  const onReader = (end: () => Promise<void>): void => void (endReader = end);
  const crew = await gather({ ...task, folder, onDownload: downloadsTo(host), onAdvice, onReader, onFault: die });
  const { wasm: module, desk, options, planned, usefulThreads } = crew;
  wasm = module;
  session = await running(signal, (call) => module.openByDesk(host, desk, options, call, planned.baseBytes));
  return { facts: session.facts(), stats: session.stats(), usefulThreads };
}

function downloadsTo(host: Host): (loadedBytes: number, totalBytes: number) => void {
  return (loadedBytes, totalBytes) => host.progress('download', loadedBytes, totalBytes, undefined, 0);
}

/** A model was refused: what is no model is not kept, and who lacks memory hears why weights cannot stream. */
async function refused(source: SourceSpec, thrown: unknown): Promise<unknown> {
  const { code, message, details } = toPlainError(thrown);
  if (code === 'invalid_model' && details['reason'] !== WEB_PAGE) {
    await endReader?.();
    files?.close?.();
    await forget(source).catch(() => undefined); // the next opening tries again: the cause is what matters now
  }
  if (code !== 'out_of_memory' || advice === undefined) return thrown;
  return new SluiceError(code, `${message} (weights cannot be streamed: ${advice})`, details);
}

/** Starts the module. A worker has one model in its life. */
async function start(build: BuildName, folder: string | null): Promise<Wasm> {
  if (wasm !== undefined) throw alreadyOpen();
  return (wasm = await startWasm(build, folder));
}

function alreadyOpen(): SluiceError {
  return new SluiceError('misuse', 'this worker has opened a model already');
}

/** Runs a call of the engine that the caller's signal can stop. */
async function running<T>(signal: AbortSignal, start: (call: Call) => Promise<T>): Promise<T> {
  const call = new (loaded().Call)();
  const abort = (): void => call.abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await start(call);
  } finally {
    // The call is left to the garbage collector: a late `proceed` must find it.
    signal.removeEventListener('abort', abort);
  }
}

/** Runs a call that answers in pieces. */
async function answer(
  { signal, item }: { signal: AbortSignal; item: (item: Chunk) => Promise<void> | undefined },
  start: (engine: Session, call: Call, onChunk: Parameters<Session['generate']>[3]) => Promise<Answered>,
): Promise<null> {
  const engine = opened();
  let first = true;
  const { finishReason, stats } = await running(signal, (call) =>
    start(engine, call, (text, id, logprob, top) => {
      if (first) tellStats(engine);
      first = false;
      hold(call, item({ text, id, logprob, finishReason: null, usage: null, ...(top && { topLogprobs: pairs(top) }) }));
    }),
  );
  tellStats(engine);
  const { promptTokens, generatedTokens, reusedTokens } = stats;
  const usage = { promptTokens, generatedTokens, reusedTokens };
  void item({ text: '', id: null, logprob: null, finishReason, usage });
  return null;
}

/** Figures that belong to what is said next. While the engine works, its host tells them. */
function tellStats(engine: Session): void {
  server.tell({ kind: 'stats', stats: engine.stats() });
}

/** What the module gives one after the other: ids and log-probabilities. */
function pairs(flat: Float64Array): TokenLogprob[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => ({ id: flat[2 * i] ?? 0, logprob: flat[2 * i + 1] ?? 0 }));
}

/** Texts that the engine embeds in one call. */
const TEXTS_AT_ONCE = 32;

/** Holds the engine until the reader has caught up. */
function hold(call: Call, credit: Promise<void> | undefined): void {
  if (credit === undefined) return;
  call.hold();
  void credit.then(() => call.proceed());
}

function loaded(): Wasm {
  if (wasm === undefined) throw new SluiceError('misuse', 'no model is open');
  return wasm;
}

function opened(): Session {
  if (session === undefined) throw new SluiceError('misuse', 'no model is open');
  return session;
}
