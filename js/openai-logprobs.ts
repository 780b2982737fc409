/** Log-probabilities as the two APIs of OpenAI show them; the texts of tokens come from the model's vocabulary. */

import type { CompletionLogprobs, TokenEntry } from './openai-wire.js';
import type { Chunk } from './options.js';

/** Texts of ids, special tokens shown on request. */
export type Detokenize = (ids: readonly number[], options: { special: true }) => Promise<string>;

/** Makes entries of an answer's tokens, in order, a few at a time. */
export class Logprobs {
  readonly #detokenize: Detokenize;
  readonly #texts = new Map<number, string>();
  /** Code points before the next token that begins a character. */
  #offset = 0;
  /** Tokens that a character is begun in. */
  #open: number[] = [];

  constructor(detokenize: Detokenize) {
    this.#detokenize = detokenize;
  }

  /** The entries of a chat. */
  async entries(tokens: readonly Chunk[]): Promise<TokenEntry[]> {
    const fact = async (id: number, logprob: number): Promise<Omit<TokenEntry, 'top_logprobs'>> => {
      const token = await this.#text(id);
      return { token, bytes: token.includes(PART) ? null : Array.from(new TextEncoder().encode(token)), logprob };
    };
    const found: TokenEntry[] = [];
    for (const { id, logprob, topLogprobs = [] } of tokens) {
      const top = [];
      for (const other of topLogprobs) top.push(await fact(other.id, other.logprob));
      found.push({ ...(await fact(id ?? 0, logprob ?? 0)), top_logprobs: top });
    }
    return found;
  }

  /** The lists of a completion; offsets go on from the tokens that were given before. */
  async lists(tokens: readonly Chunk[]): Promise<CompletionLogprobs> {
    const found: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    for (const { id, logprob, topLogprobs = [] } of tokens) {
      const top: Record<string, number> = {};
      const taken = { id: id ?? 0, logprob: logprob ?? 0 };
      // Two parts of characters can look the same: the likelier one stays.
      for (const other of [...topLogprobs, taken]) top[await this.#text(other.id)] ??= other.logprob;
      found.tokens.push(await this.#text(taken.id));
      found.token_logprobs.push(taken.logprob);
      found.top_logprobs.push(top);
      found.text_offset.push(await this.#place(taken.id));
    }
    return found;
  }

  /** Where the character begins that `id` begins or goes on with. */
  async #place(id: number): Promise<number> {
    const place = this.#offset;
    this.#open.push(id);
    const text = this.#open.length === 1 ? await this.#text(id) : await this.#detokenize(this.#open, { special: true });
    if (text.endsWith(PART) && this.#open.length < MOST_PARTS) return place;
    this.#offset += Array.from(text).length;
    this.#open = [];
    return place;
  }

  /** Alone or first, a token of some vocabularies loses the space it begins with: its text is what a second one adds. */
  async #text(id: number): Promise<string> {
    const known = this.#texts.get(id);
    if (known !== undefined) return known;
    const twice = await this.#detokenize([id, id], { special: true });
    const text = twice.slice(twice.length >> 1);
    this.#texts.set(id, text);
    return text;
  }
}

/** What stands for bytes that are no whole character. */
const PART = '\u{fffd}';

/** Bytes of a character, at most; what is no character after that many tokens never becomes one. */
const MOST_PARTS = 4;
