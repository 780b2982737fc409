// Parameters of the OpenAI-shaped adapter that are wrong: refused by the name that the caller wrote, whoever noticed, with the status of the API.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { SluiceError } from '../../js/errors.js';
import { type OpenAIOptions, type Served, type SluiceOpenAI, openai } from '../../js/openai.js';
import { type Asked, fake } from './fake-engine.js';

const user = { role: 'user', content: 'Hi' };
const params = { model: 'm', messages: [user] };

/** The refusal of a parameter: its name, and a message that has it. */
function refusal(key: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof SluiceError, String(error));
    assert.deepEqual([error.code, error.details['key']], ['invalid_option', key], error.message);
    assert.ok(error.message.includes(`'${key}'`), error.message);
    return true;
  };
}

test('parameters of a wrong type are refused by name, and nothing is asked of the engine', async () => {
  const asked: Asked[] = [];
  const api = openai(fake(asked));
  const chats = [
    { max_tokens: '5' },
    { max_completion_tokens: 1.5 },
    { temperature: 'hot' },
    { temperature: -1 },
    { top_p: true },
    { frequency_penalty: Number.NaN },
    { presence_penalty: [] },
    { seed: 0.5 },
    { stop: 7 },
    { stop: ['x', 7] },
    { logit_bias: { x: 1 } },
    { logit_bias: { 1: 'x' } },
    { n: '1' },
    { logprobs: true, top_logprobs: '2' },
    { logprobs: 'yes' },
    { reasoning_effort: 1 },
    { tools: {} },
    { messages: [] },
  ];
  for (const change of chats) {
    const key = Object.keys(change).at(-1) ?? '';
    await assert.rejects(api.chat.completions.create({ ...params, ...change }), refusal(key));
  }
  const completions = [{ echo: 'x' }, { logprobs: true }, { logprobs: 6 }, { max_tokens: -1 }, { best_of: '1' }, { prompt: [] }];
  for (const change of completions) {
    const key = Object.keys(change)[0] ?? '';
    await assert.rejects(api.completions.create({ model: 'm', prompt: 'x', ...change }), refusal(key));
  }
  await assert.rejects(api.completions.create({ model: 'm', prompt: 'x', echo: true, logprobs: 1 }), refusal('logprobs'));
  for (const change of [{ input: [] }, { dimensions: '2' }, { encoding_format: 1 }]) {
    const key = Object.keys(change)[0] ?? '';
    await assert.rejects(api.embeddings.create({ model: 'm', input: 'x', ...change }), refusal(key));
  }
  const unsure = { ...params, stream: true, stream_options: { include_usage: 'yes' } };
  await assert.rejects(api.chat.completions.create(unsure), refusal('stream_options.include_usage'));
  assert.deepEqual(asked, []);
});

test('what is wrong with a message is said of its place', async () => {
  const api = openai(fake());
  const wrong: [string, unknown][] = [
    ['messages[1]', 'x'],
    ['messages[1].role', { content: 'x' }],
    ['messages[1].content', { role: 'user', content: null }],
    ['messages[1].content', { role: 'system' }],
    ['messages[1].content', { role: 'user', content: 5 }],
    [
      'messages[1].content[1]',
      {
        role: 'user',
        content: [
          { type: 'text', text: 'x' },
          { type: 'image_url', image_url: {} },
        ],
      },
    ],
    ['messages[1].tool_calls', { role: 'assistant', content: null, tool_calls: {} }],
  ];
  for (const [place, message] of wrong) {
    await assert.rejects(api.chat.completions.create({ model: 'm', messages: [user, message] }), refusal(place));
  }
  await assert.rejects(api.chat.completions.create({ ...params, tools: [{ type: 'custom' }] }), refusal('tools[0]'));
  const { fetch } = api;
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch, maxRetries: 0 });
  const silent = client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: null as unknown as string }] });
  await assert.rejects(silent, { status: 400, param: 'messages[0].content', type: 'invalid_request_error' });
});

test('what the engine refuses is told under the name that the caller wrote', async () => {
  const api = openai(fake());
  const failing = (option: string): object => ({ ...params, messages: [{ role: 'user', content: `fails ${option}` }] });
  const names: [string, string, object][] = [
    ['maxTokens', 'max_tokens', { max_tokens: 3 }],
    ['maxTokens', 'max_completion_tokens', { max_completion_tokens: 3 }],
    ['topP', 'top_p', {}],
    ['logitBias', 'logit_bias', {}],
    ['logprobs', 'top_logprobs', {}],
    ['stop', 'stop', {}],
  ];
  for (const [option, name, more] of names) {
    const refused = api.chat.completions.create({ ...failing(option), ...more });
    await assert.rejects(refused, { details: { key: name }, message: `parameter '${name}' is 3; it must be less` });
    const stream = (await api.chat.completions.create({ ...failing(option), ...more, stream: true })) as AsyncIterable<unknown>;
    const read = async (): Promise<void> => {
      for await (const piece of stream) assert.ok(piece);
    };
    await assert.rejects(read(), { details: { key: name } });
  }
  await assert.rejects(api.completions.create({ model: 'm', prompt: 'fails topP' }), refusal('top_p'));
  await assert.rejects(api.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'refuse' }] }), {
    code: 'context_full',
    details: { key: 'messages', needed: 9 },
  });
  const empty: Served = {
    ...fake(),
    embed: () => Promise.reject(new SluiceError('invalid_option', 'a text is empty', { key: 'texts' })),
  };
  await assert.rejects(openai(empty).embeddings.create({ model: 'm', input: '' }), refusal('input'));
});

test('the second argument has a signal and what the SDK knows, and nothing of it reaches the engine as an option', async () => {
  const asked: Asked[] = [];
  const api = openai(fake(asked));
  const { signal } = new AbortController();
  const sdk: OpenAI.RequestOptions = { signal, maxRetries: 0, headers: { a: 'b' }, idempotencyKey: 'x' };
  await api.chat.completions.create({ ...params, max_tokens: 2 }, sdk);
  await api.chat.completions.create({ ...params, max_tokens: 2 }, { signal: null });
  assert.deepEqual(
    asked.map(({ options }) => options),
    [{ maxTokens: 2 }, { maxTokens: 2 }],
  );
  const wrong: [string, object][] = [
    ['options.temperature', { temperature: 2 }],
    ['options.timeout', { timeout: 5 }],
    ['options.signal', { signal: {} }],
  ];
  for (const [key, request] of wrong) {
    await assert.rejects(api.chat.completions.create(params, request), refusal(key));
    await assert.rejects(api.completions.create({ model: 'm', prompt: 'x' }, request), refusal(key));
    await assert.rejects(api.embeddings.create({ model: 'm', input: 'x' }, request), refusal(key));
  }
  assert.equal(asked.length, 2);
});

test('a model without a template of its own is given one with the adapter', async () => {
  const asked: Asked[] = [];
  await openai(fake(asked), { template: 'chatml' }).chat.completions.create({ ...params, max_tokens: 2 });
  assert.deepEqual(asked[0]?.options, { maxTokens: 2, template: 'chatml' });
});

test('an adapter over what is no engine, or with unknown options, is refused at once', () => {
  const over = (llm: unknown, options?: unknown) => (): SluiceOpenAI => openai(llm as Served, options as OpenAIOptions);
  assert.throws(over(null), { code: 'misuse', message: /await open/ });
  assert.throws(over(Promise.resolve(fake())), { code: 'misuse' });
  assert.throws(over(fake(), null), { code: 'invalid_option', details: { key: 'options' } });
  assert.throws(over(fake(), { modle: 'x' }), { code: 'invalid_option', details: { key: 'modle' } });
  assert.throws(over(fake(), { model: 1 }), { code: 'invalid_option', details: { key: 'model' } });
});

test('log-probabilities of completions have the lists of the API, in characters also where a token is a part of one', async () => {
  // As a vocabulary that writes a space before words: alone, the first loses it.
  const texts = [' é', 'a', '\u{fffd}', '\u{fffd}', ' b'];
  const engine: Served = {
    ...fake(),
    generate: async function* () {
      await Promise.resolve();
      for (const id of texts.keys()) {
        const topLogprobs = [{ id: 1, logprob: -0.5 }];
        yield { text: 'x', id, logprob: id === 1 ? -0.5 : -2, topLogprobs, finishReason: null, usage: null };
      }
    },
    detokenize: (ids) => {
      const text = Array.from(ids, (id) => texts[id]).join('');
      return Promise.resolve(Array.from(ids).join() === '2,3' ? '€' : text.replace(/^ /, ''));
    },
  };
  const asked: OpenAI.CompletionCreateParamsNonStreaming = { model: 'm', prompt: 'x', logprobs: 1 };
  const whole: OpenAI.Completion = await openai(engine).completions.create(asked);
  const expected: OpenAI.CompletionChoice.Logprobs = {
    tokens: [' é', 'a', '\u{fffd}', '\u{fffd}', ' b'],
    token_logprobs: [-2, -0.5, -2, -2, -2],
    top_logprobs: [
      { a: -0.5, ' é': -2 },
      { a: -0.5 },
      { a: -0.5, '\u{fffd}': -2 },
      { a: -0.5, '\u{fffd}': -2 },
      { a: -0.5, ' b': -2 },
    ],
    text_offset: [0, 2, 3, 3, 4],
  };
  assert.deepEqual(whole.choices[0]?.logprobs, expected);
  const offsets: (number | undefined)[] = [];
  const stream = await openai(engine).completions.create({ model: 'm', prompt: 'x', logprobs: 0, stream: true });
  for await (const { choices } of stream) offsets.push(choices[0]?.logprobs?.text_offset[0]);
  assert.deepEqual(offsets, expected.text_offset, 'piece by piece too');
});

/** Compiled: what typed users write for the official client. */
export async function typed(
  api: SluiceOpenAI,
  given: OpenAI.EmbeddingCreateParams,
  answers: OpenAI.CreateEmbeddingResponse,
): Promise<unknown> {
  const plain: OpenAI.CreateEmbeddingResponse = await api.embeddings.create({ model: 'm', input: 'x' });
  const variable: OpenAI.CreateEmbeddingResponse = await api.embeddings.create(given);
  const encoded: string | undefined = (await api.embeddings.create({ model: 'm', input: 'x', encoding_format: 'base64' })).data[0]
    ?.embedding;
  const ours: Awaited<ReturnType<typeof api.embeddings.create>> = answers;
  const chat = {
    model: 'm',
    messages: [user] as OpenAI.ChatCompletionMessageParam[],
  } satisfies OpenAI.ChatCompletionCreateParams;
  const streaming: OpenAI.ChatCompletionCreateParamsStreaming = { ...chat, stream: true };
  const whole: OpenAI.ChatCompletion = await api.chat.completions.create(chat);
  const pieces: AsyncIterable<OpenAI.ChatCompletionChunk> = await api.chat.completions.create(streaming);
  const asked: OpenAI.CompletionCreateParamsNonStreaming = { model: 'm', prompt: 'x' };
  const completion: OpenAI.Completion = await api.completions.create(asked);
  return [plain, variable, encoded, ours, whole, pieces, completion];
}
