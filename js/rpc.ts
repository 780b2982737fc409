/**
 * Requests and replies over a message port, the calling side: ids, aborts, and streams of items with credit, so that a slow reader
 * slows the writer. It knows nothing of what the calls are for. The answering side is `rpc-server.ts`.
 */

import { type PlainError, SluiceError, fromPlainError } from './errors.js';

/** What one call carries: `item`s before its `reply`. */
export interface Call {
  request: object;
  reply: unknown;
  item: unknown;
}

/** A worker, a worker's own scope, or a MessagePort. */
export interface Endpoint {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message' | 'messageerror', listener: (event: MessageEvent) => void): void;
}

/** What the calling side says. `credit` is how many more items it will take. After `end` it says no more. */
export type FromClient =
  | { kind: 'call'; id: number; name: string; request: unknown; credit: number }
  | { kind: 'abort'; id: number }
  | { kind: 'credit'; id: number; n: number }
  | { kind: 'end' };

/** What the answering side says. After `ended` or `dead` it says no more. */
export type FromServer =
  | { kind: 'item'; id: number; value: unknown }
  | { kind: 'news'; value: unknown }
  | { kind: 'done'; id: number; value: unknown }
  | { kind: 'failed'; id: number; error: PlainError }
  | { kind: 'ended' }
  | { kind: 'dead'; error: PlainError };

/** Items that the answering side may be ahead. */
const CREDIT = 32;

interface Pending {
  onItem(value: unknown): void;
  onEnd(value: unknown): void;
  onError(error: unknown): void;
}

/** What a caller reads whose options hold what no message carries, such as a function where a text belongs. */
function unsendable(name: string, error: unknown): unknown {
  if (!(error instanceof DOMException) || error.name !== 'DataCloneError') return error;
  return new SluiceError('invalid_option', `${name} was given what cannot go to a worker; give plain data (${error.message})`);
}

/** Calls what is the page's own. What one of them throws is an error of the page and keeps nothing from the others. */
export function callEach<T>(callbacks: Iterable<(value: T) => void>, value: T): void {
  for (const callback of callbacks) {
    try {
      callback(value);
    } catch (thrown) {
      if (typeof reportError === 'function') reportError(thrown);
      else queueMicrotask(() => rethrow(thrown)); // Node
    }
  }
}

function rethrow(thrown: unknown): never {
  throw thrown;
}

/** The calling side. */
export class Client<Calls extends { [K in keyof Calls]: Call }, News = never> {
  readonly #endpoint: Endpoint;
  readonly #listeners: ((news: News) => void)[] = [];
  readonly #pending = new Map<number, Pending>();
  readonly #onDead: () => void;
  #nextId = 1;
  #dead: unknown;
  #onEnded = (): void => undefined;

  /** `onDead` hears that the other side will answer nothing any more. */
  constructor(endpoint: Endpoint, onDead: () => void = () => undefined) {
    this.#endpoint = endpoint;
    this.#onDead = onDead;
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
      end = { error: signal?.reason }; // also when all has come: what was not read yet is lost
      wake();
      this.#send({ kind: 'abort', id });
    };
    this.#pending.set(id, {
      onItem: (value) => {
        if (end !== undefined) return; // it was on its way when the call was aborted
        items.push(value);
        wake();
      },
      onEnd: (value) => finish({ value }),
      onError: (error) => finish({ error }),
    });
    try {
      try {
        this.#send({ kind: 'call', id, name, request, credit: CREDIT });
      } catch (error) {
        throw unsendable(name, error);
      }
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

  /** `listener` hears from now on what the answering side says unasked. */
  hear(listener: (news: News) => void): void {
    this.#listeners.push(listener);
  }

  /** The other side is gone: everything pending and everything later rejects with `error`. */
  fail(error: unknown): void {
    this.#dead ??= error;
    for (const pending of this.#pending.values()) pending.onError(this.#dead);
  }

  /** Ends the conversation, as `fail` does; resolves when the other side has let go of what it holds, or is gone. */
  end(error: unknown): Promise<void> {
    if (this.#dead !== undefined) return Promise.resolve();
    this.#send({ kind: 'end' });
    this.fail(error);
    return new Promise((resolve) => (this.#onEnded = resolve));
  }

  #send(message: FromClient): void {
    if (this.#dead === undefined) this.#endpoint.postMessage(message, []);
  }

  #receive(message: FromServer): void {
    if (message.kind === 'ended') return this.#onEnded();
    if (message.kind === 'dead') {
      this.fail(fromPlainError(message.error));
      this.#onEnded();
      return this.#onDead();
    }
    if (message.kind === 'news') {
      callEach(this.#listeners, message.value as News); // the answering side is typed by the same `News`
      return;
    }
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
