/** How a worker comes to others, which the page starts for it, and how these hear who asked for them (`js/workers.ts` says why). */

import { INTERNAL_MESSAGE, SluiceError } from '../errors.js';
import type { FromPage, ToPage, Welcome, WorkerRole } from '../protocol.js';

/** A worker that works for this one. */
export class HiredWorker {
  /** Hears what it says. */
  onmessage: (message: unknown) => void = () => undefined;
  /** Hears what it died of, an empty text if it never ran. */
  onfault: (said: string) => void = () => undefined;
  readonly #n = (hiredBefore += 1);
  readonly #port: MessagePort;

  constructor(role: WorkerRole) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }) => this.onmessage(data);
    hired.set(this.#n, this);
    ask({ kind: 'hire', n: this.#n, role, employer: port2 }, [port2]);
  }

  postMessage(message: unknown, transfer: Transferable[] = []): void {
    this.#port.postMessage(message, transfer);
  }

  /** Ends it, and those it asked for. */
  terminate(): void {
    if (!hired.delete(this.#n)) return;
    ask({ kind: 'dismiss', n: this.#n }, []);
    this.#port.close();
  }
}

/** The channel to who asked for this worker. `listen` is called once, by the worker's entry. */
export const employer = {
  listen(onMessage: (message: unknown) => void): void {
    listener = onMessage;
  },
  postMessage(message: unknown, transfer: Transferable[] = []): void {
    port?.postMessage(message, transfer);
  },
};

self.addEventListener('message', ({ data }: MessageEvent<Welcome | { kind: undefined }>) => {
  if (data.kind !== 'welcome') return;
  page = data.page;
  page.onmessage = ({ data: { n, said } }: MessageEvent<FromPage>) => hired.get(n)?.onfault(said);
  port = data.employer;
  if (port !== null) port.onmessage = ({ data }) => listener(data);
});

function ask(question: ToPage, transfer: Transferable[]): void {
  if (page === undefined) throw new SluiceError('internal', INTERNAL_MESSAGE, { thrown: 'no page to start workers' });
  page.postMessage(question, transfer);
}

let page: MessagePort | undefined;
let port: MessagePort | null = null;
let listener: (message: unknown) => void = () => undefined;
let hiredBefore = 0;
const hired = new Map<number, HiredWorker>();
