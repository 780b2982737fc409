/**
 * The workers of one engine, all of them started by the page: in Firefox (seen in 153) a worker that starts another now and then
 * blocks for ever in doing so. A worker asks the page for others over a port of its own and talks to each over a channel of theirs.
 */

import type { FromPage, ToPage, Welcome, WorkerRole } from './protocol.js';
import type { Endpoint } from './rpc.js';

/** A worker, or what stands for one in tests. */
export interface EnginePort extends Endpoint {
  terminate(): unknown;
}

/** Hears once what a worker died of, an empty text if it never ran. */
export type OnFault = (said: string) => void;

/**
 * Starts an engine's worker, of the package's own file or of the one at `url`; throws where no worker may start. The first `nHelpers`
 * that it will ask for load beside it.
 */
export function startMain(url: URL | undefined, onFault: OnFault, nHelpers: number): EnginePort {
  const worker = makeWorker('main', url);
  return welcome(worker, url, null, onFault, makeSpares(nHelpers, url));
}

/** A helper that nobody has asked for yet. */
interface Spare {
  worker: Worker;
  /** It could not be loaded. */
  failed: boolean;
}

function makeSpares(n: number, main: URL | undefined): Spare[] {
  const make = (): Spare => {
    const spare = { worker: makeWorker('helper', main), failed: false };
    spare.worker.addEventListener('error', () => (spare.failed = true));
    return spare;
  };
  return Array.from({ length: n }, make);
}

/** Serves a worker that runs already. What it asks for is looked for beside `main`; ending it ends them all. */
export function welcome(
  worker: Worker,
  main: URL | undefined,
  employer: MessagePort | null,
  onFault: OnFault,
  spares: Spare[] = [],
): EnginePort {
  const hired = new Map<number, EnginePort>();
  const { port1: port, port2: page } = new MessageChannel();
  port.onmessage = ({ data }: MessageEvent<ToPage>) => {
    const { kind, n } = data;
    if (kind === 'dismiss') {
      hired.get(n)?.terminate();
      hired.delete(n);
      return;
    }
    const onFault = (said: string): void => port.postMessage({ kind: 'fault', n, said } satisfies FromPage);
    try {
      const spare = data.role === 'helper' ? spares.shift() : undefined;
      hired.set(n, welcome(spare?.worker ?? makeWorker(data.role, main), main, data.employer, onFault));
      if (spare?.failed === true) onFault('');
    } catch {
      onFault('');
    }
  };
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    onFault(event.message);
  });
  const first: Welcome = { kind: 'welcome', page, employer };
  worker.postMessage(first, employer === null ? [page] : [page, employer]);
  return {
    postMessage: (message, transfer) => worker.postMessage(message, transfer),
    addEventListener: (type, listener) => worker.addEventListener(type, listener),
    terminate: () => {
      worker.terminate();
      port.close();
      for (const each of hired.values()) each.terminate();
      for (const { worker } of spares.splice(0)) worker.terminate();
      hired.clear();
    },
  };
}

function makeWorker(role: WorkerRole, main: URL | undefined): Worker {
  const names = { main: 'sluice', helper: 'sluice helper', download: 'sluice download' };
  const options = { type: 'module', name: names[role] } as const;
  if (main !== undefined) return new Worker(role === 'main' ? main : new URL(`./${role}.js`, main), options);
  // Bundlers look for these words.
  switch (role) {
    case 'main':
      return new Worker(new URL('./worker/main.js', import.meta.url), { type: 'module', name: 'sluice' });
    case 'helper':
      return new Worker(new URL('./worker/helper.js', import.meta.url), { type: 'module', name: 'sluice helper' });
    case 'download':
      return new Worker(new URL('./worker/download.js', import.meta.url), { type: 'module', name: 'sluice download' });
  }
}
