// An engine for tests of the OpenAI-shaped adapter: it says what it was asked, answers 'Hello', and fails on request.
import { SluiceError } from '../../js/errors.js';
import type { Served } from '../../js/openai.js';
import type { ChatMessage, Chunk } from '../../js/options.js';

/** What an engine was asked. */
export interface Asked {
  what: unknown;
  options: unknown;
}

/** An engine that says what it was asked. */
export function fake(asked: Asked[] = [], addsTexts = false): Served {
  const usage = { promptTokens: 5, generatedTokens: 2, reusedTokens: 3 };
  async function* answer(
    what: unknown,
    { signal, ...options }: { signal?: AbortSignal },
  ): AsyncGenerator<Chunk, void, undefined> {
    asked.push({ what, options });
    await Promise.resolve();
    if (JSON.stringify(what).includes('break')) throw new SluiceError('internal', 'broken');
    const failing = JSON.stringify(what).match(/fails (\w+)/)?.[1];
    if (failing !== undefined) throw new SluiceError('invalid_option', `\`${failing}\` is 3; it must be less`, { key: failing });
    if (JSON.stringify(what).includes('refuse')) throw new SluiceError('context_full', 'too long', { needed: 9 });
    for (const [id, text] of ['Hel', 'lo'].entries()) {
      signal?.throwIfAborted();
      yield { text, id, logprob: -1, topLogprobs: [{ id: 7, logprob: -2 }], finishReason: null, usage: null };
    }
    yield { text: '', id: null, logprob: null, finishReason: 'length', usage };
  }
  return {
    chat: (messages: readonly ChatMessage[], options) => answer(messages, options ?? {}),
    generate: (prompt, options) => answer(prompt, options ?? {}),
    embed: (texts, options) => {
      asked.push({ what: texts, options });
      return Promise.resolve({ vectors: Array.from(texts).map((_, i) => Float32Array.of(i, 0.5)), tokens: 4 });
    },
    renderChat: (messages) =>
      addsTexts && messages.some(({ content }) => content === null)
        ? Promise.reject(new SluiceError('invalid_model', 'the template adds texts'))
        : Promise.resolve({ text: '', ids: [] }),
    detokenize: (ids) => Promise.resolve(Array.from(ids, (id) => `<${id}>`).join('')),
    config: { context: 99 } as Served['config'],
    model: { name: 'fake', width: 2 } as Served['model'],
  };
}
