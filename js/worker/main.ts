/** The worker's entry: answers the calls of `protocol.ts` with the wasm module. */

import { INTERNAL_MESSAGE, SluiceError } from '../errors.js';
import type { BuildName, TokenLogprob } from '../options.js';
import type { Calls, News, SourceSpec } from '../protocol.js';
import { type Handlers, Server } from '../rpc-server.js';
import type { Call, Session } from '../wasm/simd/sluice.js';
import { BlobSource } from './blob-source.js';
import { type Host, makeHost } from './host.js';
import { Measured } from './measured.js';
import { OpfsSource } from './opfs-source.js';
import { RangeSource } from './range-source.js';
import { type Source, sourceFailed } from './source.js';
import { type Wasm, startWasm } from './wasm.js';

let wasm: Wasm | undefined;
let session: Session | undefined;
let measured: Measured | undefined;

const handlers: Handlers<Calls> = {
  async open({ source, options, build, wasm: folder }, { signal }) {
    const module = await start(build, folder);
    const host = makeHost((progress) => server.tell({ kind: 'progress', progress }));
    const files = await openSource(source, host);
    session = await running(signal, (call) => module.open(host, files, options, call));
    return { facts: session.facts(), stats: session.stats() };
  },

  async inspect({ source, options, build, wasm: folder, rates }, { signal }) {
    const module = await start(build, folder);
    const host = makeHost((progress) => server.tell({ kind: 'progress', progress }));
    const files = await openSource(source, host);
    const header = await running(signal, (call) => module.inspect(host, files, options, call));
    measured = await Measured.of(header, build, rates, files, source.kind);
    files.close?.();
    return { card: header.card(), ...measured.fit(options) };
  },

  refit({ options }) {
    if (measured === undefined) throw new SluiceError('misuse', 'no model was inspected');
    return Promise.resolve(measured.fit(options));
  },

  async generate({ prompt, options }, { signal, item }) {
    const engine = opened();
    const due = everyNow();
    const finishReason = await running(signal, (call) =>
      engine.generate(prompt, options, call, (text, id, logprob, top) => {
        const stats = due() ? engine.stats() : null;
        const chunk = { text, id, logprob, finishReason: null, ...(top && { topLogprobs: pairs(top) }) };
        hold(call, item({ chunk, stats }));
      }),
    );
    void item({ chunk: { text: '', id: null, logprob: null, finishReason }, stats: engine.stats() });
    return null;
  },

  async tokenize({ text, addSpecial, parseSpecial }) {
    return { ids: await opened().tokenize(text, addSpecial, parseSpecial) };
  },

  async detokenize({ ids, special }) {
    return { text: await opened().detokenize(ids, special) };
  },

  async logits({ ids, chunk }, { signal, item }) {
    const engine = opened();
    await running(signal, (call) => engine.logits(ids, chunk, call, (row) => hold(call, item(row, [row.buffer]))));
    return { stats: engine.stats() };
  },
};

const server = new Server<Calls, News>(self, handlers, die);

// A trap inside a future of the module surfaces here and not in the promise that waits for it.
self.addEventListener('error', (event) => {
  event.preventDefault();
  die(event.error);
});
self.addEventListener('unhandledrejection', (event) => {
  event.preventDefault();
  die(event.reason);
});

/** The module is broken and cannot be trusted with another call. */
function die(thrown: unknown): void {
  const name = thrown instanceof Error ? thrown.name : typeof thrown;
  server.die(new SluiceError('internal', INTERNAL_MESSAGE, { thrown: name, place: panicPlace() }));
  self.close();
}

function panicPlace(): string {
  try {
    return wasm?.panicPlace() ?? 'unknown';
  } catch {
    return 'unknown'; // a module whose memory is spoilt cannot say
  }
}

/** Starts the module. A worker has one model in its life. */
async function start(build: BuildName, folder: string | null): Promise<Wasm> {
  if (wasm !== undefined) throw new SluiceError('misuse', 'this worker has opened a model already');
  return (wasm = await startWasm(build, folder));
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

/** What the module gives one after the other: ids and log-probabilities. */
function pairs(flat: Float64Array): TokenLogprob[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => ({ id: flat[2 * i] ?? 0, logprob: flat[2 * i + 1] ?? 0 }));
}

/** Holds the engine until the reader has caught up. */
function hold(call: Call, credit: Promise<void> | undefined): void {
  if (credit === undefined) return;
  call.hold();
  void credit.then(() => call.proceed());
}

function openSource(spec: SourceSpec, host: Host): Promise<Source> {
  switch (spec.kind) {
    case 'range':
      return RangeSource.open(spec.urls, {
        headers: spec.headers,
        credentials: spec.credentials,
        onDownload: (loadedBytes, totalBytes) => {
          host.progress(loadedBytes, totalBytes);
        },
      });
    case 'blob':
      return Promise.resolve(new BlobSource(spec.blobs));
    case 'handle':
      return handleSource(spec.handles);
  }
}

/** A stored file is read in place, a picked one as a blob. */
async function handleSource(handles: readonly FileSystemFileHandle[]): Promise<Source> {
  return (await OpfsSource.open(handles)) ?? new BlobSource(await Promise.all(handles.map(fileOf)));
}

async function fileOf(handle: FileSystemFileHandle, file: number): Promise<File> {
  try {
    return await handle.getFile();
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.name : String(thrown);
    const what = reason === 'NotFoundError' ? 'was removed' : `cannot be opened (${reason})`;
    throw sourceFailed(`the stored file ${handle.name} ${what}: store or pick it again`, { file, reason });
  }
}

function loaded(): Wasm {
  if (wasm === undefined) throw new SluiceError('misuse', 'no model is open');
  return wasm;
}

function opened(): Session {
  if (session === undefined) throw new SluiceError('misuse', 'no model is open');
  return session;
}

/** True now and then: figures are not worth a message for each token. */
function everyNow(): () => boolean {
  let last = -Infinity;
  return () => {
    const now = performance.now();
    if (now - last < STATS_MS) return false;
    last = now;
    return true;
  };
}

const STATS_MS = 100;
