/** A conversation: turns, what an answer is made of, and what retrying or editing cuts off. It knows neither page nor engine. */

import type { ChatMessage } from 'sluice-llm';

/** How an answer ended; `null` while it comes. */
export type Ending = 'done' | 'length' | 'stopped' | 'failed' | null;

/** One turn. */
export interface Turn {
  readonly role: 'user' | 'assistant';
  text: string;
  /** Of answers. */
  ending?: Ending;
  /** Of answers: a line about how it was made. */
  note?: string;
}

/** The turns so far. A question is always followed by its answer, if only by an empty one. */
export class Conversation {
  readonly turns: Turn[] = [];

  /** Asks: the question and an answer that is still to come. */
  ask(text: string): Turn {
    this.turns.push({ role: 'user', text });
    return this.#answer();
  }

  /** Another answer to the question before turn `index`; all later turns go. */
  retry(index: number): Turn {
    this.#expect(index, 'assistant');
    this.turns.length = index;
    return this.#answer();
  }

  /** Another question in the place of turn `index`; all later turns go. */
  edit(index: number, text: string): Turn {
    this.#expect(index, 'user');
    this.turns.length = index;
    return this.ask(text);
  }

  clear(): void {
    this.turns.length = 0;
  }

  /** What a model is given to answer the last question: answers that have no text are left out with their questions. */
  messages(system: string): ChatMessage[] {
    const messages: ChatMessage[] = system.trim() === '' ? [] : [{ role: 'system', content: system.trim() }];
    for (const [index, { role, text }] of this.turns.entries()) {
      const answer = this.turns[index + 1];
      const isLast = index >= this.turns.length - 2;
      if (role === 'user' && !isLast && answer?.text.trim() === '') continue;
      if (role === 'assistant' && text.trim() === '') continue;
      messages.push({ role, content: text });
    }
    return messages;
  }

  /** For a storage of texts. */
  saved(): string {
    return JSON.stringify(this.turns);
  }

  /** What `saved` gave; anything else is an empty conversation. An answer that was under way counts as stopped. */
  static restored(saved: string | null): Conversation {
    const conversation = new Conversation();
    try {
      const turns: unknown = JSON.parse(saved ?? '[]');
      if (Array.isArray(turns) && turns.length % 2 === 0 && turns.every(isTurn)) conversation.turns.push(...turns);
    } catch {
      // not ours: begin anew
    }
    for (const turn of conversation.turns) {
      if (turn.role === 'assistant') turn.ending ??= 'stopped';
    }
    return conversation;
  }

  #answer(): Turn {
    const turn: Turn = { role: 'assistant', text: '', ending: null };
    this.turns.push(turn);
    return turn;
  }

  #expect(index: number, role: Turn['role']): void {
    if (this.turns[index]?.role !== role) throw new RangeError(`turn ${index} is not one of the ${role}`);
  }
}

function isTurn(value: unknown, index: number): value is Turn {
  const turn = value as Partial<Turn> | null;
  return typeof turn?.text === 'string' && turn.role === (index % 2 === 0 ? 'user' : 'assistant');
}
