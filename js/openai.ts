/** An opened model behind the shape of OpenAI's API: the same calls with the same parameters and answers, and a `fetch` for the official SDK. */

import type { Engine } from './engine.js';
import { SluiceError } from './errors.js';
import { checkedOnly } from './given.js';
import { type Names, type Params, inCallersWords, refused } from './openai-checks.js';
import { serve } from './openai-fetch.js';
import { Logprobs } from './openai-logprobs.js';
import {
  CHAT_PARAMS,
  COMPLETION_PARAMS,
  EMBEDDING_PARAMS,
  IGNORED_PARAMS,
  NAMES,
  chatNames,
  chatOf,
  checked,
  completionOf,
  requestOf,
} from './openai-params.js';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  Completion,
  CompletionChoice,
  CompletionLogprobs,
  EmbeddingResponse,
  RequestOptions,
  Usage,
  WireReason,
} from './openai-wire.js';
import type { ChatMessage, ChatOptions, Chunk, PoolingOptions, TokenCounts } from './options.js';

export type {
  ChatCompletion,
  ChatCompletionChunk,
  Completion,
  CompletionChoice,
  CompletionLogprobs,
  EmbeddingResponse,
  RequestOptions,
  TokenEntry,
  TokenFact,
  Usage,
  WireReason,
} from './openai-wire.js';

/** How a model is served. */
export interface OpenAIOptions {
  /** The name that `models` lists; requests may name any. */
  model?: string;
  /** How `embeddings` pools; vectors have length 1, as OpenAI's have. */
  pooling?: PoolingOptions['pooling'];
  /** The chat template of a model whose file has none, as in the options of `chat`. */
  template?: string;
}

/** What the parts of the API need of an engine. */
export type Served = Pick<Engine, 'chat' | 'generate' | 'embed' | 'renderChat' | 'detokenize' | 'config' | 'model'>;

/** The API over an opened model. */
export interface SluiceOpenAI {
  readonly chat: { readonly completions: { create: ChatCreate } };
  readonly completions: { create: CompletionCreate };
  readonly embeddings: { create: EmbeddingCreate };
  /** Parameters that are accepted and have no meaning here. */
  readonly ignored: readonly string[];
  /** Serves `/chat/completions`, `/completions`, `/embeddings` and `/models` of any address, in the page. */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
}

/** Parameters that ask for a stream. */
export interface Streamed {
  model: string;
  stream: true;
}

/** Parameters that do not. */
export interface Whole {
  model: string;
  stream?: false | null;
}

/** `create` of chats. */
export interface ChatCreate {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- a type parameter lets literals have more keys
  <P extends Streamed>(params: P, options?: RequestOptions): Promise<AsyncGenerator<ChatCompletionChunk, void, undefined>>;
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- a type parameter lets literals have more keys
  <P extends Whole>(params: P, options?: RequestOptions): Promise<ChatCompletion>;
  (params: object, options?: RequestOptions): Promise<ChatCompletion | AsyncGenerator<ChatCompletionChunk, void, undefined>>;
}

/** `create` of completions. */
export interface CompletionCreate {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- a type parameter lets literals have more keys
  <P extends Streamed>(params: P, options?: RequestOptions): Promise<AsyncGenerator<Completion, void, undefined>>;
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- a type parameter lets literals have more keys
  <P extends Whole>(params: P, options?: RequestOptions): Promise<Completion>;
  (params: object, options?: RequestOptions): Promise<Completion | AsyncGenerator<Completion, void, undefined>>;
}

/** Parameters that ask for vectors as texts. */
export interface Encoded {
  model: string;
  encoding_format: 'base64';
}

/** `create` of embeddings. Like the official type it promises numbers where the parameters' type does not tell. */
export interface EmbeddingCreate {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- a type parameter lets literals have more keys
  <P extends Encoded>(params: P, options?: RequestOptions): Promise<EmbeddingResponse<string>>;
  (params: object, options?: RequestOptions): Promise<EmbeddingResponse>;
}

/** Puts the API over `llm`. */
export function openai(llm: Served, options: OpenAIOptions = {}): SluiceOpenAI {
  checkServing(llm, options);
  const api = {
    chat: { completions: { create: (params: object, request?: RequestOptions) => createChat(llm, params, options, request) } },
    completions: { create: (params: object, request?: RequestOptions) => createCompletion(llm, params, request) },
    embeddings: { create: (params: object, request?: RequestOptions) => createEmbeddings(llm, params, options, request) },
  };
  const model = options.model ?? llm.model.name ?? llm.model.architecture;
  // One function answers both ways; the interface says which when.
  return {
    ...(api as Pick<SluiceOpenAI, 'chat' | 'completions' | 'embeddings'>),
    ignored: IGNORED_PARAMS,
    fetch: serve(api, model),
  };
}

/** Refuses what is no engine, and options that are none. */
function checkServing(llm: Served | null, options: OpenAIOptions): void {
  if (typeof llm?.chat !== 'function') {
    throw new SluiceError('misuse', "'openai' takes an opened model: await open(…) first", { key: 'llm' });
  }
  checkedOnly(options, { model: 'string', pooling: 'string', template: 'string' });
}

async function createChat(
  llm: Served,
  given: object,
  { template }: OpenAIOptions,
  request?: RequestOptions,
): Promise<ChatCompletion | AsyncGenerator<ChatCompletionChunk>> {
  const params = checked(given, CHAT_PARAMS);
  const { messages, options: asked } = chatOf(params, llm.config.context);
  const options = { ...asked, ...(template !== undefined && { template }) };
  const head = { id: newId('chatcmpl'), created: now(), model: params['model'] as string };
  const more = requestOf(request);
  const answer = llm.chat(await speakable(llm, messages, options), { ...options, ...more });
  const pieces = told(answer, chatNames(params), 'messages');
  const texts = textsOf(llm);
  const logprobsOf = async (tokens: readonly Chunk[]): Promise<ChatLogprobs> =>
    options.logprobs === undefined ? null : { content: await texts.entries(tokens), refusal: null };
  if (params['stream'] === true) return streamChat(pieces, logprobsOf, head, includesUsage(params));
  const { text, reason, tokens, usage } = await whole(pieces);
  const logprobs = await logprobsOf(tokens);
  const message = { role: 'assistant', content: text, refusal: null } as const;
  return {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs, finish_reason: reason }],
    usage,
  };
}

/** Assistants that call tools often say nothing (`null`); for templates that want a text in every message they say the empty one. */
async function speakable(llm: Served, messages: ChatMessage[], options: ChatOptions): Promise<ChatMessage[]> {
  const silent = (message: ChatMessage | null): boolean => message?.role === 'assistant' && message.content === null;
  if (!messages.some(silent)) return messages;
  const { tools, template, templateArguments } = options;
  const rest = { ...(tools && { tools }), ...(templateArguments && { templateArguments }) };
  try {
    await llm.renderChat(messages, { ...rest, ...(template !== undefined && { template }) });
    return messages;
  } catch {
    return messages.map((message) => (silent(message) ? { ...message, content: '' } : message));
  }
}

type ChatLogprobs = ChatCompletionChunk['choices'][0]['logprobs'];

async function* streamChat(
  pieces: AsyncGenerator<Chunk>,
  logprobsOf: (tokens: readonly Chunk[]) => Promise<ChatLogprobs>,
  head: Pick<ChatCompletionChunk, 'id' | 'created' | 'model'>,
  withUsage: boolean,
): AsyncGenerator<ChatCompletionChunk, void, undefined> {
  const chunk = (
    delta: { role?: 'assistant'; content?: string },
    logprobs: ChatLogprobs,
    reason: WireReason | null,
  ): ChatCompletionChunk => {
    const choices = [{ index: 0, delta, logprobs, finish_reason: reason }];
    return { ...head, object: 'chat.completion.chunk', choices, ...(withUsage && { usage: null }) };
  };
  yield chunk({ role: 'assistant', content: '' }, null, null);
  for await (const piece of pieces) {
    const logprobs = piece.id === null ? null : await logprobsOf([piece]);
    if (piece.text !== '' || logprobs !== null) yield chunk({ content: piece.text }, logprobs, null);
    if (piece.finishReason !== null) yield chunk({}, null, piece.finishReason);
    if (piece.usage !== null && withUsage) {
      yield { ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(piece.usage) };
    }
  }
}

/** The pieces of an answer; what fails is told in the caller's words. */
async function* told(pieces: AsyncGenerator<Chunk>, names: Names, input: string): AsyncGenerator<Chunk, void, undefined> {
  try {
    yield* pieces;
  } catch (error) {
    throw inCallersWords(error, names, input);
  }
}

async function createCompletion(
  llm: Served,
  given: object,
  request?: RequestOptions,
): Promise<Completion | AsyncGenerator<Completion>> {
  const params = checked(given, COMPLETION_PARAMS);
  const { prompts, options } = completionOf(params);
  const more = requestOf(request);
  const head = { id: newId('cmpl'), object: 'text_completion', created: now(), model: params['model'] as string } as const;
  const echo = params['echo'] === true;
  const choices = (index: number, text: string, logprobs: CompletionLogprobs | null, reason: WireReason): CompletionChoice[] => [
    { index, text, logprobs, finish_reason: reason },
  ];
  const before = async (prompt: string | number[]): Promise<string> => {
    if (!echo) return '';
    if (typeof prompt === 'string') return prompt;
    return llm.detokenize(prompt, { special: true }).catch((error: unknown) => {
      throw inCallersWords(error, NAMES, 'prompt');
    });
  };
  const answer = (prompt: string | number[]): AsyncGenerator<Chunk> =>
    told(llm.generate(prompt, { ...options, ...more }), NAMES, 'prompt');
  const logprobsOf = async (texts: Logprobs, tokens: readonly Chunk[]): Promise<CompletionLogprobs | null> =>
    options.logprobs === undefined ? null : texts.lists(tokens);

  async function* stream(): AsyncGenerator<Completion, void, undefined> {
    let usage: Usage | undefined;
    for (const [index, prompt] of prompts.entries()) {
      const open = null as unknown as WireReason; // the wire has null here, which the official type of a piece leaves out
      const texts = textsOf(llm);
      if (echo) yield { ...head, choices: choices(index, await before(prompt), null, open) };
      for await (const piece of answer(prompt)) {
        const { text, finishReason, usage: counted } = piece;
        const logprobs = piece.id === null ? null : await logprobsOf(texts, [piece]);
        if (text !== '' || logprobs !== null || finishReason !== null)
          yield { ...head, choices: choices(index, text, logprobs, finishReason ?? open) };
        if (counted !== null) usage = sum(usage, usageOf(counted));
      }
    }
    if (includesUsage(params) && usage !== undefined) yield { ...head, choices: [], usage };
  }

  if (params['stream'] === true) return stream();
  const found: Completion = { ...head, choices: [] };
  for (const [index, prompt] of prompts.entries()) {
    const { text, reason, tokens, usage } = await whole(answer(prompt));
    found.usage = sum(found.usage, usage);
    found.choices.push(...choices(index, (await before(prompt)) + text, await logprobsOf(textsOf(llm), tokens), reason));
  }
  return found;
}

async function createEmbeddings(
  llm: Served,
  given: object,
  { pooling }: OpenAIOptions,
  request?: RequestOptions,
): Promise<EmbeddingResponse | EmbeddingResponse<string>> {
  const params = checked(given, EMBEDDING_PARAMS);
  const { input, encoding_format: format = 'float', dimensions, model } = params;
  const texts = typeof input === 'string' ? [input] : input;
  if (!Array.isArray(texts) || !texts.every((text): text is string => typeof text === 'string')) {
    throw refused('input', 'must be a text or a list of texts');
  }
  if (texts.length === 0) throw refused('input', 'must have at least one text');
  if (format !== 'float' && format !== 'base64') throw refused('encoding_format', "can be 'float' or 'base64' only");
  const { width } = llm.model;
  if (dimensions !== undefined && dimensions !== width) throw refused('dimensions', `can be ${width} only`);
  const how = { normalize: true, ...(pooling && { pooling }), ...requestOf(request) };
  const { vectors, tokens } = await llm.embed(texts, how).catch((error: unknown) => {
    throw inCallersWords(error, NAMES, 'input');
  });
  const data = <V>(value: (vector: Float32Array) => V): EmbeddingResponse<V>['data'] =>
    vectors.map((vector, index) => ({ object: 'embedding', index, embedding: value(vector) }));
  const rest = { object: 'list', model: model as string, usage: { prompt_tokens: tokens, total_tokens: tokens } } as const;
  return format === 'float' ? { ...rest, data: data((v) => Array.from(v)) } : { ...rest, data: data(base64) };
}

interface Gathered {
  text: string;
  reason: WireReason;
  tokens: Chunk[];
  usage: Usage;
}

async function whole(pieces: AsyncGenerator<Chunk>): Promise<Gathered> {
  const found: Gathered = { text: '', reason: 'stop', tokens: [], usage: usageOf(NOTHING) };
  for await (const chunk of pieces) {
    found.text += chunk.text;
    if (chunk.id !== null) found.tokens.push(chunk);
    if (chunk.finishReason !== null) found.reason = chunk.finishReason;
    if (chunk.usage !== null) found.usage = usageOf(chunk.usage);
  }
  return found;
}

function textsOf(llm: Served): Logprobs {
  return new Logprobs((ids, options) => llm.detokenize(ids, options));
}

function usageOf({ promptTokens, generatedTokens, reusedTokens }: TokenCounts): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: generatedTokens,
    total_tokens: promptTokens + generatedTokens,
    prompt_tokens_details: { cached_tokens: reusedTokens },
  };
}

function sum(a: Usage | undefined, b: Usage): Usage {
  if (a === undefined) return b;
  return {
    prompt_tokens: a.prompt_tokens + b.prompt_tokens,
    completion_tokens: a.completion_tokens + b.completion_tokens,
    total_tokens: a.total_tokens + b.total_tokens,
    prompt_tokens_details: { cached_tokens: a.prompt_tokens_details.cached_tokens + b.prompt_tokens_details.cached_tokens },
  };
}

function includesUsage(params: Params): boolean {
  return (params['stream_options'] as { include_usage?: unknown } | undefined)?.include_usage === true;
}

function base64(vector: Float32Array): string {
  let bytes = '';
  for (const byte of new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

function newId(kind: string): string {
  return `${kind}-${crypto.randomUUID()}`;
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}

const NOTHING: TokenCounts = { promptTokens: 0, generatedTokens: 0, reusedTokens: 0 };
