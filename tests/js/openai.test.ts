// The OpenAI-shaped adapter over a fake engine: wire shapes by the official types, parameters, streams, errors, and the official SDK over `fetch`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { CHAT_PARAMS, type COMPLETION_PARAMS, type EMBEDDING_PARAMS, IGNORED_PARAMS } from '../../js/openai-params.js';
import { openai } from '../../js/openai.js';
import { type Asked, fake } from './fake-engine.js';

const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Hi' }];

test('answers have the shapes of the official types', async () => {
  const api = openai(fake());
  const chat: OpenAI.ChatCompletion = await api.chat.completions.create({
    model: 'm',
    messages,
    logprobs: true,
    top_logprobs: 1,
  });
  const choice = chat.choices[0];
  assert.deepEqual(choice?.message, { role: 'assistant', content: 'Hello', refusal: null });
  assert.equal(choice.finish_reason, 'length');
  assert.deepEqual(choice.logprobs?.content?.[1], {
    token: '<1>',
    bytes: [60, 49, 62],
    logprob: -1,
    top_logprobs: [{ token: '<7>', bytes: [60, 55, 62], logprob: -2 }],
  });
  assert.deepEqual(chat.usage, {
    prompt_tokens: 5,
    completion_tokens: 2,
    total_tokens: 7,
    prompt_tokens_details: { cached_tokens: 3 },
  });

  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of await api.chat.completions.create({
    model: 'm',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  })) {
    chunks.push(chunk);
  }
  assert.deepEqual(
    chunks.map(({ choices }) => choices[0]?.delta),
    [{ role: 'assistant', content: '' }, { content: 'Hel' }, { content: 'lo' }, {}, undefined],
  );
  assert.deepEqual([chunks[3]?.choices[0]?.finish_reason, chunks[4]?.usage?.total_tokens], ['length', 7]);

  const completion: OpenAI.Completion = await api.completions.create({ model: 'm', prompt: ['a', [1, 2]], echo: true });
  assert.deepEqual(
    completion.choices.map(({ text }) => text),
    ['aHello', '<1><2>Hello'],
  );
  assert.equal(completion.usage?.total_tokens, 14);
  const embeddings = await api.embeddings.create({ model: 'm', input: ['x', 'y'] });
  const official: OpenAI.CreateEmbeddingResponse = embeddings;
  assert.deepEqual(official.data, [
    { object: 'embedding', index: 0, embedding: [0, 0.5] },
    { object: 'embedding', index: 1, embedding: [1, 0.5] },
  ]);
});

test('parameters reach the engine under its own names', async () => {
  const asked: Asked[] = [];
  const api = openai(fake(asked), { pooling: 'last' });
  const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] as const;
  const params: OpenAI.ChatCompletionCreateParamsNonStreaming = {
    model: 'm',
    messages: [...messages, { role: 'assistant', tool_calls: [...calls] }],
    max_completion_tokens: 3,
    temperature: 0.5,
    top_p: null,
    stop: ['x'],
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- callers give it
    seed: 1,
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- callers give it
    user: 'ignored',
    reasoning_effort: 'low',
    tools: [{ type: 'function', function: { name: 'f' } }],
  };
  await api.chat.completions.create(params);
  assert.deepEqual(asked.pop(), {
    what: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: { a: 1 } } }],
      },
    ],
    options: {
      maxTokens: 3,
      temperature: 0.5,
      seed: 1,
      stop: ['x'],
      tools: [{ type: 'function', function: { name: 'f' } }],
      templateArguments: { reasoning_effort: 'low' },
    },
  });
  await api.chat.completions.create({ model: 'm', messages });
  assert.deepEqual(asked.pop()?.options, { maxTokens: 99 }, 'an answer may fill the context');
  await api.embeddings.create({ model: 'm', input: 'x' });
  assert.deepEqual(asked.pop()?.options, { normalize: true, pooling: 'last' });
});

test('what is unknown or cannot be done is refused by name', async () => {
  const asked: Asked[] = [];
  const api = openai(fake(asked));
  const wrong = [
    { top_k: 1 },
    { n: 2 },
    { response_format: { type: 'json_object' } },
    { functions: [] },
    { tool_choice: 'required' },
    { logprobs: 3 },
    { stream: 'yes' },
    { stream_options: {} },
    { stream_options: { include_what: true }, stream: true },
    { top_logprobs: 1 },
    { model: 1 },
    { messages: 'x' },
  ];
  for (const change of wrong) {
    const key = Object.keys(change)[0];
    await assert.rejects(api.chat.completions.create({ model: 'm', messages, ...change }), {
      code: 'invalid_option',
      details: { key },
    });
  }
  await assert.rejects(api.completions.create({ model: 'm', prompt: 'x', suffix: 'y' }), { details: { key: 'suffix' } });
  await assert.rejects(api.embeddings.create({ model: 'm', input: [1] }), { details: { key: 'input' } });
  const before = asked.length;
  await assert.rejects(api.embeddings.create({ model: 'm', input: 'x', dimensions: 9 }), {
    details: { key: 'dimensions' },
    message: /can be 2 only/,
  });
  assert.equal(asked.length, before, 'nothing is computed for what is refused');
  await api.embeddings.create({ model: 'm', input: 'x', dimensions: 2 });
});

test('an assistant that calls a tool and says nothing is no reason to refuse, whatever the template does with texts', async () => {
  const asked: Asked[] = [];
  const api = openai(fake(asked, true));
  const silent = { role: 'assistant', content: null, tool_calls: [null, { function: { arguments: '{' } }] };
  await api.chat.completions.create({ model: 'm', messages: [...messages, silent] });
  assert.deepEqual(asked.pop()?.what, [...messages, { ...silent, content: '' }]);
  await openai(fake(asked)).chat.completions.create({ model: 'm', messages: [...messages, silent] });
  assert.deepEqual(asked.pop()?.what, [...messages, silent]);
});

test('a stream has log-probabilities too, piece by piece', async () => {
  const found: (string | undefined)[] = [];
  const params = { model: 'm', messages, stream: true, logprobs: true } as const;
  for await (const { choices } of await openai(fake()).chat.completions.create(params)) {
    found.push(choices[0]?.logprobs?.content[0]?.token);
  }
  assert.deepEqual(found, [undefined, '<0>', '<1>', undefined]);
});

type Known<P, L extends readonly string[]> = Exclude<keyof P, L[number] | (typeof IGNORED_PARAMS)[number]>;
/** The compiler refuses this when the official types have a parameter that the lists lack. */
const missing: [
  Known<OpenAI.ChatCompletionCreateParams, typeof CHAT_PARAMS>,
  Known<OpenAI.CompletionCreateParams, typeof COMPLETION_PARAMS>,
  Known<OpenAI.EmbeddingCreateParams, typeof EMBEDDING_PARAMS>,
][] = [];

test('every parameter of the official types is obeyed, ignored or refused', () => {
  assert.equal(missing.length, 0);
  const all = [...CHAT_PARAMS, ...IGNORED_PARAMS];
  assert.equal(new Set(all).size, all.length);
  assert.deepEqual(openai(fake()).ignored, IGNORED_PARAMS);
});

test('the official SDK runs over fetch', async () => {
  const { fetch } = openai(fake());
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch, maxRetries: 0 });
  const whole = await client.chat.completions.create({ model: 'm', messages });
  assert.equal(whole.choices[0]?.message.content, 'Hello');
  let text = '';
  for await (const chunk of await client.chat.completions.create({ model: 'm', messages, stream: true }))
    text += chunk.choices[0]?.delta.content ?? '';
  assert.equal(text, 'Hello');
  text = '';
  for await (const chunk of await client.completions.create({ model: 'm', prompt: 'x', stream: true }))
    text += chunk.choices[0]?.text ?? '';
  assert.equal(text, 'Hello');
  const { data } = await client.embeddings.create({ model: 'm', input: ['x', 'y'] });
  assert.deepEqual(Array.from(data[1]?.embedding ?? []), [1, 0.5], 'base64, as the SDK asks for it');
  assert.deepEqual((await client.models.list()).data[0]?.id, 'fake');

  const refused = client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'refuse' }], stream: true });
  await assert.rejects(refused, { status: 400, code: 'context_length_exceeded' });
  await assert.rejects(client.chat.completions.create({ model: 'm', messages, n: 2 }), { status: 400, param: 'n' });
  await assert.rejects(client.files.list(), { status: 404 });
  const aborter = new AbortController();
  const stream = await client.chat.completions.create({ model: 'm', messages, stream: true }, { signal: aborter.signal });
  const seen: string[] = [];
  for await (const chunk of stream) {
    seen.push(chunk.choices[0]?.delta.content ?? '');
    aborter.abort();
  }
  assert.ok(seen.length < 4, 'an abort ends the stream');
});

test('the SDK does not ask again for what fails the same way each time', async () => {
  const asked: Asked[] = [];
  const { fetch } = openai(fake(asked));
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch });
  const broken = client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'break' }] });
  await assert.rejects(broken, { status: 500, code: 'internal' });
  assert.equal(asked.length, 1);
});

/** Asks for a stream over `fetch`. */
function streamed(api: { fetch: typeof fetch }, content: string, signal?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], stream: true });
  return api.fetch('http://x/v1/chat/completions', { method: 'POST', body, ...(signal && { signal }) });
}

test('a body that nobody reads keeps the engine from nobody, one that is cancelled frees it', async () => {
  let [pieces, stopped, hangs] = [0, 0, 0];
  const engine = fake();
  engine.chat = async function* (_messages, options) {
    try {
      for (; pieces < 100; pieces++) {
        await Promise.resolve();
        yield { text: 'x', id: 1, logprob: null, finishReason: null, usage: null };
      }
      if (hangs > 0)
        await new Promise((_, reject) => options?.signal?.addEventListener('abort', () => reject(new Error('aborted'))));
    } finally {
      stopped += 1;
    }
  };
  const api = openai(engine) as { fetch: typeof fetch };
  const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
  const unread = await streamed(api, 'x');
  await settled();
  assert.deepEqual([pieces, stopped], [100, 1]);
  assert.equal((await unread.text()).split('data: ').length, 103, 'who reads late has all of it');
  [pieces, hangs] = [0, 1];
  const cancelled = await streamed(api, 'x');
  await settled();
  assert.deepEqual([pieces, stopped], [100, 1]);
  await cancelled.body?.cancel();
  await settled();
  assert.equal(stopped, 2);
  pieces = 0;
  const controller = new AbortController();
  await streamed(api, 'x', controller.signal);
  await settled();
  controller.abort();
  await settled();
  assert.equal(stopped, 3);
});
