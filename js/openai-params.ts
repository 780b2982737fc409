/** Parameters of OpenAI's API → options of the engine. What has no meaning here is accepted and named; what is unknown or cannot be done is refused by name. */

import { isSignal } from './given.js';
import { type Names, type Params, checkMessages, checkTools, checkTypes, mustBe, refused } from './openai-checks.js';
import type { RequestOptions } from './openai-wire.js';
import type { ChatMessage, ChatOptions, GenerateOptions } from './options.js';

/** Known parameters that have no meaning for a model in the page: they are accepted and do nothing. */
export const IGNORED_PARAMS = [
  'metadata',
  'moderation',
  'parallel_tool_calls',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'store',
  'user',
  'verbosity',
] as const;

/** Parameters of `chat.completions.create` that are obeyed, or refused for what they ask. */
export const CHAT_PARAMS = [
  'audio',
  'frequency_penalty',
  'function_call',
  'functions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'messages',
  'modalities',
  'model',
  'n',
  'presence_penalty',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'stream',
  'stream_options',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'web_search_options',
] as const;

/** Likewise of `completions.create`. */
export const COMPLETION_PARAMS = [
  'best_of',
  'echo',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'max_tokens',
  'model',
  'n',
  'presence_penalty',
  'prompt',
  'seed',
  'stop',
  'stream',
  'stream_options',
  'suffix',
  'temperature',
  'top_p',
] as const;

/** Likewise of `embeddings.create`. */
export const EMBEDDING_PARAMS = ['dimensions', 'encoding_format', 'input', 'model'] as const;

/** Refuses parameters that are not in `known`; those that are null count as not given, as on the wire. */
export function checked(params: unknown, known: readonly string[]): Params {
  if (typeof params !== 'object' || params === null) throw refused('body', 'must be an object');
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined);
  const stranger = given.find(([key]) => !known.includes(key) && !(IGNORED_PARAMS as readonly string[]).includes(key));
  if (stranger !== undefined) throw refused(stranger[0], 'is not known');
  const all: Params = Object.fromEntries(given);
  if (all['model'] === undefined) throw refused('model', 'is missing');
  checkTypes(all);
  checkStream(all);
  return all;
}

function checkStream({ stream, stream_options: options }: Params): void {
  if (options === undefined) return;
  if (stream !== true) throw refused('stream_options', "needs 'stream': true");
  const given = Object.entries(Object(options) as object);
  if (typeof options !== 'object' || given.some(([key]) => !STREAM_OPTIONS.includes(key))) {
    throw refused('stream_options', `can have ${STREAM_OPTIONS.map((key) => `'${key}'`).join(' and ')} only`);
  }
  const wrong = given.find(([, value]) => value !== null && value !== undefined && typeof value !== 'boolean');
  if (wrong !== undefined) throw refused(`stream_options.${wrong[0]}`, 'must be true or false');
}

/** The second one has no meaning here: nothing goes over a network. */
const STREAM_OPTIONS = ['include_usage', 'include_obfuscation'];

/** The conversation and options of a chat. */
export function chatOf(params: Params, context: number): { messages: ChatMessage[]; options: ChatOptions } {
  mustBe(params, 'n', [1]);
  for (const key of ['audio', 'functions', 'function_call', 'web_search_options']) mustBe(params, key, []);
  mustBe(params, 'tool_choice', ['auto', 'none']);
  const { response_format: format, modalities } = params;
  if (format !== undefined && (Object(format) as { type?: unknown }).type !== 'text')
    throw refused('response_format', "can be { type: 'text' } only");
  if (modalities !== undefined && JSON.stringify(modalities) !== '["text"]') throw refused('modalities', "can be ['text'] only");
  const { messages, tools, reasoning_effort: effort } = params;
  checkMessages(messages);
  if (Array.isArray(tools)) checkTools(tools);
  const options = sampling(params, params['max_completion_tokens'] ?? params['max_tokens'] ?? context);
  mustBe(params, 'logprobs', [true, false]);
  if (params['logprobs'] === true)
    options.logprobs = (params['top_logprobs'] as number | undefined) ?? 0; // `checked` saw to it
  else if (params['top_logprobs'] !== undefined) throw refused('top_logprobs', "needs 'logprobs': true");
  return {
    messages: messages.map(message),
    options: {
      ...options,
      ...(tools !== undefined && params['tool_choice'] !== 'none' && { tools: tools as readonly unknown[] }), // Rust checks it
      ...(effort !== undefined && { templateArguments: { reasoning_effort: effort } }),
    },
  };
}

/** The prompts and options of a completion. */
export function completionOf(params: Params): { prompts: (string | number[])[]; options: GenerateOptions } {
  mustBe(params, 'n', [1]);
  mustBe(params, 'best_of', [1]);
  mustBe(params, 'suffix', []);
  const { logprobs, echo } = params;
  const options = sampling(params, params['max_tokens'] ?? 16);
  if (logprobs !== undefined) {
    if (!Number.isInteger(logprobs) || (logprobs as number) < 0 || (logprobs as number) > MOST_LOGPROBS)
      throw refused('logprobs', `must be a whole number from 0 to ${MOST_LOGPROBS}`);
    if (echo === true)
      throw refused('logprobs', "cannot go with 'echo': new tokens have probabilities, those of a prompt are not kept");
    options.logprobs = logprobs as number;
  }
  return { prompts: promptsOf(params['prompt']), options };
}

/** What the engine's options are called in a chat. */
export function chatNames(params: Params): Names {
  const maxTokens = params['max_completion_tokens'] === undefined ? 'max_tokens' : 'max_completion_tokens';
  return { ...NAMES, maxTokens, logprobs: 'top_logprobs', templateArguments: 'reasoning_effort' };
}

/** Likewise in a completion and for embeddings. */
export const NAMES: Names = {
  frequencyPenalty: 'frequency_penalty',
  logitBias: 'logit_bias',
  logprobs: 'logprobs',
  maxTokens: 'max_tokens',
  messages: 'messages',
  presencePenalty: 'presence_penalty',
  prompt: 'prompt',
  seed: 'seed',
  stop: 'stop',
  temperature: 'temperature',
  texts: 'input',
  tools: 'tools',
  topP: 'top_p',
};

/** As the API has it. */
const MOST_LOGPROBS = 5;

/** What a call takes beside its parameters, unknown keys refused; the SDK's others have no meaning in the page. */
export function requestOf(options: unknown): { signal?: AbortSignal } {
  if (options === undefined || options === null) return {};
  if (typeof options !== 'object') throw refused('options', 'must be an object');
  const given = options as RequestOptions;
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || IGNORED_REQUEST_OPTIONS.includes(key)) continue;
    if (key === 'timeout') throw refused('options.timeout', 'is not served here: give { signal: AbortSignal.timeout(ms) }');
    if (key !== 'signal') throw refused(`options.${key}`, 'is not known');
  }
  const { signal } = given;
  if (signal === undefined || signal === null) return {};
  if (!isSignal(signal)) throw refused('options.signal', 'must be an AbortSignal');
  return { signal };
}

/** Nothing goes over a network: there is nobody to send these to, and nothing to try again. */
const IGNORED_REQUEST_OPTIONS: readonly string[] = ['fetchOptions', 'headers', 'idempotencyKey', 'maxRetries', 'query'];

/** Names that both sides have; Rust knows the ranges. */
function sampling(params: Params, maxTokens: unknown): GenerateOptions {
  const options = {
    maxTokens,
    frequencyPenalty: params['frequency_penalty'],
    presencePenalty: params['presence_penalty'],
    temperature: params['temperature'],
    topP: params['top_p'],
    seed: params['seed'],
    stop: params['stop'],
    logitBias: params['logit_bias'],
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)); // Rust checks the values
}

function promptsOf(prompt: unknown): (string | number[])[] {
  const isIds = (value: unknown): value is number[] => Array.isArray(value) && value.every((id) => typeof id === 'number');
  if (typeof prompt === 'string') return [prompt];
  if (isIds(prompt) && prompt.length > 0) return [prompt];
  const isPrompt = (value: unknown): value is string | number[] => typeof value === 'string' || isIds(value);
  if (Array.isArray(prompt) && prompt.length > 0 && prompt.every(isPrompt)) return prompt;
  throw refused('prompt', 'must be a text, token ids, or a list of these');
}

/** Templates take the arguments of a call as the object that the wire has as text. */
function message(given: unknown): ChatMessage {
  const { tool_calls: calls, ...rest } = Object(given) as ChatMessage; // Rust checks it
  if (!Array.isArray(calls)) return given as ChatMessage;
  return { ...rest, content: rest.content ?? null, tool_calls: calls.map(call) };
}

function call(given: { function?: { arguments?: unknown } } | null): unknown {
  const text = given?.function?.arguments;
  if (given === null || typeof text !== 'string') return given;
  try {
    return { ...given, function: { ...given.function, arguments: JSON.parse(text) as unknown } };
  } catch {
    return given; // a template may still take it as text
  }
}
