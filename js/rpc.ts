/**
 * Requests and replies over a message port, the calling side: ids, aborts, and streams of items with credit, so that a slow reader
 * slows the writer. It knows nothing of what the calls are for. The answering side is `rpc-server.ts`.
 */

import { type PlainError, fromPlainError } from './errors.js';

/** What one call carries: `item`s before its `reply`. */
export interface Call {
  request: object;
  reply: unknown;
  item: unknown;
}

/** A worker, a worker's own scope, or a MessagePort. */
export interface Endpoint {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

/** What the calling side says. `credit` is how many more items it will take. */
export type FromClient =
  | { kind: 'call'; id: number; name: string; request: unknown; credit: number }
  | { kind: 'abort'; id: number }
  | { kind: 'credit'; id: number; n: number };

/** What the answering side says. After `dead` it says no more. */
export type FromServer =
  | { kind: 'item'; id: number; value: unknown }
  | { kind: 'news'; value: unknown }
  | { kind: 'done'; id: number; value: unknown }
  | { kind: 'failed'; id: number; error: PlainError }
  | { kind: 'dead'; error: PlainError };

/** Items that the answering side may be ahead. */
const CREDIT = 32;

interface Pending {
  onItem(value: unknown): void;
  onEnd(value: unknown): void;
  onError(error: unknown): void;
}

/** The calling side. */
export class Client<Calls extends { [K in keyof Calls]: Call }, News = never> {
  readonly #endpoint: Endpoint;
  readonly #onNews: ((news: News) => void) | undefined;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #dead: unknown;

  /** `onNews` hears what the answering side says unasked. */
  constructor(endpoint: Endpoint, onNews?: (news: News) => void) {
    this.#endpoint = endpoint;
    this.#onNews = onNews;
    endpoint.addEventListener('message', (event: MessageEvent<FromServer>) => this.#receive(event.data));
  }

  /** One request, one reply. Rejects with the signal's reason as soon as the signal aborts. */
  async call<K extends keyof Calls & string>(
    name: K,
    request: Calls[K]['request'],
    signal?: AbortSignal,
  ): Promise<Calls[K]['reply']> {
    const stream = this.stream(name, request, signal);
    for (;;) {
      const next = await stream.next();
      if (next.done === true) return next.value;
    }
  }

  /** One request and its items; the reply is the generator's return value. Leaving the loop early aborts the call. */
  async *stream<K extends keyof Calls & string>(
    name: K,
    request: Calls[K]['request'],
    signal?: AbortSignal,
  ): AsyncGenerator<Calls[K]['item'], Calls[K]['reply'], undefined> {
    signal?.throwIfAborted();
    if (this.#dead !== undefined) throw this.#dead;
    const id = this.#nextId++;
    const items: unknown[] = [];
    let end: { value: unknown } | { error: unknown } | undefined;
    let wake = (): void => undefined;
    const finish = (how: { value: unknown } | { error: unknown }): void => {
      end ??= how;
      wake();
    };
    const onAbort = (): void => {
      items.length = 0;
      finish({ error: signal?.reason });
      this.#send({ kind: 'abort', id });
    };
    this.#pending.set(id, {
      onItem: (value) => (items.push(value), wake()),
      onEnd: (value) => finish({ value }),
      onError: (error) => finish({ error }),
    });
    try {
      this.#send({ kind: 'call', id, name, request, credit: CREDIT });
      signal?.addEventListener('abort', onAbort, { once: true });
      for (let taken = 0; ;) {
        if (items.length > 0) {
          yield items.shift() as Calls[K]['item']; // the handler of `name` made it
          taken += 1;
          if (taken % (CREDIT / 2) === 0) this.#send({ kind: 'credit', id, n: CREDIT / 2 });
        } else if (end === undefined) {
          await new Promise<void>((resolve) => (wake = resolve));
        } else if ('error' in end) {
          throw end.error;
        } else {
          return end.value as Calls[K]['reply']; // the handler of `name` made it
        }
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#pending.delete(id);
      if (end === undefined) this.#send({ kind: 'abort', id });
    }
  }

  /** The other side is gone: everything pending and everything later rejects with `error`. */
  fail(error: unknown): void {
    this.#dead ??= error;
    for (const pending of this.#pending.values()) pending.onError(this.#dead);
  }

  #send(message: FromClient): void {
    if (this.#dead === undefined) this.#endpoint.postMessage(message, []);
  }

  #receive(message: FromServer): void {
    if (message.kind === 'dead') return this.fail(fromPlainError(message.error));
    if (message.kind === 'news') return this.#onNews?.(message.value as News); // the answering side is typed by the same `News`
    const pending = this.#pending.get(message.id);
    switch (message.kind) {
      case 'item':
        return pending?.onItem(message.value);
      case 'done':
        return pending?.onEnd(message.value);
      case 'failed':
        return pending?.onError(fromPlainError(message.error));
    }
  }
}
