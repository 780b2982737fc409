/** The answering side of `rpc.ts`: runs a handler for each call, holds its items back while there is no credit, carries aborts to it. */

import { toPlainError } from './errors.js';
import type { Call, Endpoint, FromClient, FromServer } from './rpc.js';

/** What a handler answers through while it runs. */
export interface Out<C extends Call> {
  /** Aborts when the caller has lost interest; what the handler then returns or throws is dropped. */
  readonly signal: AbortSignal;
  /** Sends an item. A promise means: wait for it before sending the next. */
  readonly item: (value: C['item'], transfer?: Transferable[]) => Promise<void> | undefined;
}

/** One handler a call. */
export type Handlers<Calls extends { [K in keyof Calls]: Call }> = {
  [K in keyof Calls]: (request: Calls[K]['request'], out: Out<Calls[K]>) => Promise<Calls[K]['reply']>;
};

/** Answers the calls that arrive at `endpoint`. */
export class Server<Calls extends { [K in keyof Calls]: Call }, News = never> {
  readonly #endpoint: Endpoint;
  readonly #handlers: Handlers<Calls>;
  readonly #onFault: ((thrown: unknown) => void) | undefined;
  readonly #running = new Map<number, Running>();

  /** `onFault` hears what a handler threw when it was no error of ours. */
  constructor(endpoint: Endpoint, handlers: Handlers<Calls>, onFault?: (thrown: unknown) => void) {
    this.#endpoint = endpoint;
    this.#handlers = handlers;
    this.#onFault = onFault;
    endpoint.addEventListener('message', (event: MessageEvent<FromClient>) => this.#receive(event.data));
  }

  /** Says something unasked. */
  tell(value: News): void {
    this.#send({ kind: 'news', value });
  }

  /** Says that nothing will be answered any more, and why. */
  die(thrown: unknown): void {
    this.#send({ kind: 'dead', error: toPlainError(thrown) });
  }

  #receive(message: FromClient): void {
    switch (message.kind) {
      case 'call':
        void this.#answer(message);
        return;
      case 'abort':
        this.#running.get(message.id)?.abort();
        return;
      case 'credit':
        this.#running.get(message.id)?.grant(message.n);
    }
  }

  async #answer({ id, name, request, credit }: FromClient & { kind: 'call' }): Promise<void> {
    const running = new Running(credit);
    this.#running.set(id, running);
    const handler = this.#handlers[name as keyof Calls]; // the calling side is typed by the same `Calls`
    try {
      const value = await handler(request as Calls[keyof Calls]['request'], {
        signal: running.signal,
        item: (item, transfer) => {
          this.#send({ kind: 'item', id, value: item }, transfer);
          return running.spend();
        },
      });
      this.#send({ kind: 'done', id, value });
    } catch (thrown) {
      const error = toPlainError(thrown);
      this.#send({ kind: 'failed', id, error });
      if (error.code === 'internal') this.#onFault?.(thrown);
    } finally {
      this.#running.delete(id);
    }
  }

  #send(message: FromServer, transfer: Transferable[] = []): void {
    this.#endpoint.postMessage(message, transfer);
  }
}

/** One call under way: its credit and its abort signal. */
class Running {
  readonly #controller = new AbortController();
  #credit: number;
  #resume: (() => void) | undefined;

  constructor(credit: number) {
    this.#credit = credit;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  spend(): Promise<void> | undefined {
    this.#credit -= 1;
    if (this.#credit > 0 || this.signal.aborted) return undefined;
    return new Promise((resolve) => (this.#resume = resolve));
  }

  grant(n: number): void {
    this.#credit += n;
    if (this.#credit > 0) this.#resume?.();
  }

  abort(): void {
    this.#controller.abort();
    this.#resume?.();
  }
}
