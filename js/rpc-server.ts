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
  readonly #letGo: (() => Promise<void>) | undefined;
  readonly #running = new Map<number, Running>();
  readonly #answers = new Set<Promise<void>>();
  #dead = false;

  /**
   * `onFault` hears what a handler threw when it was no error of ours, and of a message that could not be read. `letGo` gives back what
   * the handlers hold, when the caller has ended and none runs any more.
   */
  constructor(endpoint: Endpoint, handlers: Handlers<Calls>, onFault?: (thrown: unknown) => void, letGo?: () => Promise<void>) {
    this.#endpoint = endpoint;
    this.#handlers = handlers;
    this.#onFault = onFault;
    this.#letGo = letGo;
    endpoint.addEventListener('message', (event: MessageEvent<FromClient>) => this.#receive(event.data));
    endpoint.addEventListener('messageerror', () => this.#onFault?.(new TypeError('a message could not be read')));
  }

  /** Says something unasked. */
  tell(value: News): void {
    this.#send({ kind: 'news', value });
  }

  /** From now on answers nothing; says so, and why, when `letGo` has given back what the handlers hold. */
  async die(thrown: unknown): Promise<void> {
    if (this.#dead) return;
    this.#dead = true; // what fails for what is let go is not told: the cause is
    await this.#letGo?.().catch(() => undefined);
    this.#endpoint.postMessage({ kind: 'dead', error: toPlainError(thrown) } satisfies FromServer, []);
  }

  #receive(message: FromClient): void {
    switch (message.kind) {
      case 'call': {
        const answer = this.#answer(message).finally(() => this.#answers.delete(answer));
        this.#answers.add(answer);
        return;
      }
      case 'abort':
        this.#running.get(message.id)?.abort();
        return;
      case 'credit':
        this.#running.get(message.id)?.grant(message.n);
        return;
      case 'end':
        void this.#end();
    }
  }

  async #end(): Promise<void> {
    for (const running of this.#running.values()) running.abort();
    // One that waits for a network may not hear of it.
    await Promise.race([Promise.all(this.#answers), new Promise((resolve) => setTimeout(resolve, LAST_MS))]);
    await this.#letGo?.();
    this.#send({ kind: 'ended' });
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
    if (!this.#dead) this.#endpoint.postMessage(message, transfer);
  }
}

/** What runs comes to an end within a step of the engine, some 20 ms. */
const LAST_MS = 200;

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
