/** What parameters of OpenAI's API may be, and how a refusal of the engine is told in the words of that API. It knows no answers. */

import { SluiceError } from './errors.js';

/** Parameters as they come: checked here, key by key. */
export type Params = Readonly<Record<string, unknown>>;

/** The engine's names of options and the parameters that they came from. */
export type Names = Readonly<Record<string, string>>;

/** The refusal of a parameter. */
export function refused(key: string, what: string): SluiceError {
  return new SluiceError('invalid_option', `parameter '${key}' ${what}`, { key });
}

/** Refuses a parameter that is given and none of `values`. */
export function mustBe(params: Params, key: string, values: readonly unknown[]): void {
  if (params[key] === undefined || values.includes(params[key])) return;
  throw refused(
    key,
    values.length === 0 ? 'is not served here' : `can be ${values.map((value) => JSON.stringify(value)).join(' or ')} only`,
  );
}

/** Refuses parameters of another type than the API's; what a value of the right type may be is the engine's to know. */
export function checkTypes(params: Params): void {
  for (const [key, [is, what]] of Object.entries(TYPES)) {
    const value = params[key];
    if (value !== undefined && !is(value)) throw refused(key, `is ${shown(value)}; it must be ${what}`);
  }
}

/** Refuses `messages` that are none, by the place of what is wrong. */
export function checkMessages(messages: unknown): asserts messages is object[] {
  if (!Array.isArray(messages) || messages.length === 0) throw refused('messages', 'must be a list of at least one message');
  for (const [index, message] of (messages as unknown[]).entries()) checkMessage(`messages[${index}]`, message);
}

function checkMessage(place: string, message: unknown): void {
  if (!isObject(message)) throw refused(place, 'must be an object');
  const { role, content, tool_calls: calls } = message;
  if (typeof role !== 'string') throw refused(`${place}.role`, `is ${shown(role)}; it must be a text`);
  if (!isAbsent(calls) && !Array.isArray(calls)) throw refused(`${place}.tool_calls`, 'must be a list');
  if (isAbsent(content)) {
    // An assistant may be silent, calling tools or not; nobody else.
    if (role !== 'assistant')
      throw refused(`${place}.content`, `is ${shown(content)}; it must be a text or a list of text parts`);
    return;
  }
  if (typeof content === 'string') return;
  if (!Array.isArray(content))
    throw refused(`${place}.content`, `is ${shown(content)}; it must be a text or a list of text parts`);
  for (const [index, part] of (content as unknown[]).entries()) {
    const { type, text } = Object(part) as { type?: unknown; text?: unknown };
    if (type === 'text' && typeof text === 'string') continue;
    throw refused(`${place}.content[${index}]`, "must be { type: 'text', text }: models here read text only");
  }
}

/** Refuses `tools` that are no functions. */
export function checkTools(tools: readonly unknown[]): void {
  for (const [index, tool] of tools.entries()) {
    const { type, function: called } = Object(tool) as { type?: unknown; function?: { name?: unknown } };
    if (type === 'function' && typeof (called as { name?: unknown } | null | undefined)?.name === 'string') continue;
    throw refused(`tools[${index}]`, "must be { type: 'function', function: { name, … } }");
  }
}

/**
 * A failure of the engine in the caller's words: an option is called by the parameter that it came from, and what is wrong with
 * the text as a whole is said of `input`.
 */
export function inCallersWords(error: unknown, names: Names, input: string): unknown {
  if (!(error instanceof SluiceError)) return error;
  const key = error.details['key'];
  if (typeof key === 'string' && names[key] === undefined) return error;
  if (key === undefined && error.code !== 'invalid_option' && error.code !== 'context_full') return error;
  const name = typeof key === 'string' ? names[key] : input;
  if (name === undefined) return error;
  const called = `parameter '${name}'`;
  let message =
    typeof key === 'string' ? error.message.replace(new RegExp(`(option )?['\`]${key}['\`]`, 'g'), called) : error.message;
  if (error.code === 'invalid_option' && !message.includes(called)) message = `${called}: ${message}`;
  return new SluiceError(error.code, message, { ...error.details, key: name });
}

/** A value as an error shows it. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return 'missing';
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? 'a list' : 'of another type';
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFinite(value: unknown): boolean {
  return Number.isFinite(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isFlag(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isTexts(value: unknown): boolean {
  return isText(value) || (Array.isArray(value) && value.every(isText));
}

function isBiases(value: unknown): boolean {
  return isObject(value) && Object.entries(value).every(([id, bias]) => /^\d+$/.test(id) && isFinite(bias));
}

type Type = readonly [is: (value: unknown) => boolean, what: string];

const COUNT: Type = [isCount, 'a whole number, 0 or more'];
const NUMBER: Type = [isFinite, 'a number'];
const FLAG: Type = [isFlag, 'true or false'];
const TEXT: Type = [isText, 'a text'];

/** `logprobs` is the one that differs between the calls. */
const TYPES: Readonly<Record<string, Type>> = {
  dimensions: COUNT,
  echo: FLAG,
  encoding_format: TEXT,
  frequency_penalty: NUMBER,
  logit_bias: [isBiases, 'an object of token ids and numbers'],
  max_completion_tokens: COUNT,
  max_tokens: COUNT,
  model: TEXT,
  presence_penalty: NUMBER,
  reasoning_effort: TEXT,
  seed: [Number.isSafeInteger, 'a whole number'],
  stop: [isTexts, 'a text or a list of texts'],
  stream: FLAG,
  temperature: [(value) => isFinite(value) && (value as number) >= 0, 'a number, 0 or more'],
  tools: [Array.isArray, 'a list'],
  top_logprobs: COUNT,
  top_p: NUMBER,
};
