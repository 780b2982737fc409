/**
 * Judges what callers give to the page's half, where types are not there to do it: each wrong value is refused with the name of its
 * option. What goes to the engine as it is, Rust judges.
 */

import { SluiceError } from './errors.js';
import type { Assets, OpenOptions } from './options.js';

/** An object, whose `signal` and `onProgress` are what they must be if they are there. */
export function checked<T extends object>(options: T): T {
  if (typeof options !== 'object' || (options as T | null) === null) throw wrong('options', 'must be an object', options);
  const { signal, onProgress } = options as { signal?: unknown; onProgress?: unknown };
  if (!isAbsent(signal) && !isSignal(signal)) throw wrong('signal', 'must be an AbortSignal', signal);
  if (!isAbsent(onProgress)) checkedFunction('onProgress', onProgress);
  return options;
}

/** As `checked`, and no other options than these: each must be of the type that is named. */
export function checkedOnly<T extends object>(options: T, types: Readonly<Record<keyof T & string, string>>): T {
  for (const [option, value] of Object.entries(checked(options))) {
    const type = (types as Readonly<Record<string, string>>)[option];
    if (type === undefined) {
      const known = Object.keys(types).join(', ');
      throw new SluiceError('invalid_option', `unknown option '${option}'; there are: ${known}`, { key: option });
    }
    if (value !== undefined && typeof value !== type) throw wrong(option, `must be a ${type}`, value);
  }
  return options;
}

/** A function. */
export function checkedFunction(option: string, given: unknown): void {
  if (typeof given !== 'function') throw wrong(option, 'must be a function', given);
}

/** Biases by token id, in a plain object: of another container a message would show nothing, or places instead of ids. */
export function checkedBiases(given: unknown): void {
  if (given === undefined) return;
  if (isRecord(given)) return;
  throw wrong('logitBias', 'must be a plain object of numbers by token id, such as { 42: -1 }', given);
}

/** Headers as a message carries them. Their values are secrets often, and are never repeated. */
export function plainHeaders(given: OpenOptions['headers']): Record<string, string> {
  if (given instanceof Headers) return Object.fromEntries(given);
  if (given === undefined) return {};
  if (!isRecord(given)) throw wrong('headers', 'must be a plain object of texts by name, or a Headers object', given);
  for (const [name, value] of Object.entries(given as Record<string, unknown>)) {
    if (typeof value !== 'string') throw wrong('headers', `must hold a text for '${name}'`, value);
    try {
      new Headers([[name, value]]);
    } catch {
      throw new SluiceError('invalid_option', `option 'headers': the name or the value of '${name}' is not allowed in HTTP`, {
        key: 'headers',
      });
    }
  }
  return { ...given };
}

/** How requests carry cookies. */
export function checkedCredentials(given: unknown): void {
  if (given === undefined || CREDENTIALS.some((known) => known === given)) return;
  throw wrong('credentials', "must be 'omit', 'same-origin' or 'include'", given);
}

/** Where the package's files are. */
export function checkedAssets(given: Assets | undefined): Assets {
  if (given === undefined) return {};
  if (!isRecord(given)) throw wrong('assets', "must be an object with 'worker', 'wasm' or both", given);
  for (const [option, value] of Object.entries(given as Record<string, unknown>)) {
    const key = `assets.${option}`;
    if (option !== 'worker' && option !== 'wasm') {
      throw new SluiceError('invalid_option', `unknown option '${key}'; there are: assets.worker, assets.wasm`, { key });
    }
    if (value !== undefined && typeof value !== 'string' && !(value instanceof URL))
      throw wrong(key, 'must be an address', value);
  }
  return given;
}

/** The address as a worker needs it; one that is none is the fault of `option`. */
export function absoluteUrl(url: string | URL, option: string): string {
  if (url === '') throw new SluiceError('invalid_option', `'${option}' is empty: give an address`, { key: option });
  try {
    return new URL(url, globalThis.location?.href).href;
  } catch {
    throw new SluiceError('invalid_option', `'${option}' is not an address: ${String(url)}`, { key: option });
  }
}

/** Has what is used of an `AbortSignal`, which may be one of another window. */
export function isSignal(given: unknown): boolean {
  const { aborted, addEventListener, throwIfAborted } = Object(given) as Record<string, unknown>;
  return typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof throwIfAborted === 'function';
}

function isAbsent(given: unknown): boolean {
  return given === undefined || given === null;
}

/** An object that holds nothing but its own properties. */
function isRecord(given: unknown): given is object {
  return Object.prototype.toString.call(given) === '[object Object]' && !(Symbol.iterator in (given as object));
}

function wrong(key: string, must: string, given: unknown): SluiceError {
  return new SluiceError('invalid_option', `option '${key}' ${must}, not ${shown(given)}`, { key });
}

/** A value as a message shows it: short, and nothing of what is inside. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.prototype.toString.call(value).slice(8, -1);
}

const CREDENTIALS = ['omit', 'same-origin', 'include'] as const satisfies readonly RequestCredentials[];
