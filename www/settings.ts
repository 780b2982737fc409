/** What a visitor may set: read from texts of a form, kept as texts, and turned into options. Defaults are the package's own. */

import type { ChatOptions } from 'sluice-llm';

/** The texts of the form, by name. Empty: as the package decides. */
export type SettingTexts = Readonly<Partial<Record<SettingName, string>>>;

export type SettingName = 'system' | NumberName;
type NumberName = 'maxTokens' | 'temperature' | 'topK' | 'topP' | 'minP' | 'repeatPenalty' | 'seed';

/** A number of the form: what it is called, what is allowed, what the package takes without it. */
export interface NumberSetting {
  readonly name: NumberName;
  readonly label: string;
  readonly hint: string;
  readonly min: number;
  readonly max?: number;
  readonly step: number | 'any';
  readonly standard: string;
}

export const NUMBERS: readonly NumberSetting[] = [
  {
    name: 'temperature',
    label: 'Temperature',
    hint: '0: the likeliest word always',
    min: 0,
    max: 5,
    step: 'any',
    standard: '0.8',
  },
  { name: 'topK', label: 'Top-k', hint: 'only the k likeliest words; 0: all', min: 0, step: 1, standard: '40' },
  { name: 'topP', label: 'Top-p', hint: 'only words that make up this share', min: 0, max: 1, step: 'any', standard: '0.95' },
  {
    name: 'minP',
    label: 'Min-p',
    hint: 'only words of at least this part of the likeliest',
    min: 0,
    max: 1,
    step: 'any',
    standard: '0.05',
  },
  { name: 'repeatPenalty', label: 'Repeat penalty', hint: 'above 1: fewer repetitions', min: 0.01, step: 'any', standard: '1' },
  {
    name: 'maxTokens',
    label: 'Longest answer (tokens)',
    hint: 'one token is about four letters',
    min: 1,
    step: 1,
    standard: 'to the end',
  },
  { name: 'seed', label: 'Seed', hint: 'the same seed gives the same answer', min: 0, step: 1, standard: 'drawn' },
];

/** The options of `chat` that the texts mean; a text that is no number in the range is left to the package. */
export function chatOptions(texts: SettingTexts): ChatOptions {
  const options: ChatOptions = { contextShift: true };
  for (const { name, min, max = Infinity, step } of NUMBERS) {
    const value = Number(texts[name]);
    if ((texts[name] ?? '').trim() === '' || !(value >= min && value <= max)) continue;
    options[name] = step === 1 ? Math.trunc(value) : value;
  }
  return options;
}

/** What was kept of an earlier visit; anything else is no settings. */
export function restoredSettings(saved: string | null): SettingTexts {
  try {
    const found: unknown = JSON.parse(saved ?? '{}');
    if (typeof found !== 'object' || found === null) return {};
    const names = ['system', ...NUMBERS.map(({ name }) => name)];
    return Object.fromEntries(Object.entries(found).filter(([name, text]) => names.includes(name) && typeof text === 'string'));
  } catch {
    return {};
  }
}
