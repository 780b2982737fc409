/** The dialog with system prompt and sampling settings, and the switch between light and dark; both are kept for the next visit. */

import { byId, make } from './dom.js';
import { NUMBERS, type SettingTexts, restoredSettings } from './settings.js';

const dialog = byId('settings', HTMLDialogElement);
const form = byId('settings-form', HTMLFormElement);
const system = byId('system', HTMLTextAreaElement);

/** Makes the fields and wires the dialog; gives back what reads it. */
export function wireSettings(): () => SettingTexts {
  const inputs = NUMBERS.map(({ name, label, hint, min, max, step, standard }) => {
    const id = `setting-${name}`;
    const input = make('input', { id, name, type: 'number', min: String(min), step: String(step), placeholder: standard });
    if (max !== undefined) input.max = String(max);
    input.setAttribute('aria-describedby', `${id}-hint`);
    const field = make(
      'div',
      { className: 'field' },
      make('label', { htmlFor: id }, label),
      input,
      make('small', { id: `${id}-hint` }, hint),
    );
    byId('numbers', HTMLElement).append(field);
    return input;
  });
  const fields = [system, ...inputs];
  const kept = restoredSettings(recall(KEY));
  for (const field of fields) field.value = kept[field.name as keyof SettingTexts] ?? '';
  const read = (): SettingTexts => Object.fromEntries(fields.map(({ name, value }) => [name, value]));
  form.addEventListener('input', () => remember(KEY, JSON.stringify(read())));
  byId('settings-reset', HTMLButtonElement).addEventListener('click', () => {
    for (const field of fields) field.value = '';
    remember(KEY, '{}');
  });
  byId('settings-open', HTMLButtonElement).addEventListener('click', () => dialog.showModal());
  return read;
}

/** Applies what was chosen before and wires the switch. */
export function wireTheme(onChange: () => void): void {
  const theme = byId('theme', HTMLSelectElement);
  const apply = (): void => {
    document.documentElement.dataset['theme'] = theme.value;
    onChange();
  };
  theme.value = recall('sluice-demo-theme') ?? 'auto';
  if (theme.selectedIndex < 0) theme.value = 'auto';
  theme.addEventListener('change', () => {
    remember('sluice-demo-theme', theme.value);
    apply();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
  apply();
}

/** The buttons that switch between parts of the page where only one has room. */
export function wireViews(): (to: string) => void {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>('#views button')];
  const show = (to: string): void => {
    document.body.dataset['view'] = to;
    for (const each of buttons) {
      if (each.dataset['to'] === to) each.setAttribute('aria-current', 'true');
      else each.removeAttribute('aria-current');
    }
  };
  for (const each of buttons) each.addEventListener('click', () => show(each.dataset['to'] ?? 'chat'));
  return show;
}

/** Kept for the next visit, where the browser keeps things. */
export function remember(key: string, text: string | null, storage: 'localStorage' | 'sessionStorage' = 'localStorage'): void {
  try {
    if (text === null) globalThis[storage].removeItem(key);
    else globalThis[storage].setItem(key, text);
  } catch {
    // a private window: nothing is kept
  }
}

/** What was kept. */
export function recall(key: string, storage: 'localStorage' | 'sessionStorage' = 'localStorage'): string | null {
  try {
    return globalThis[storage].getItem(key);
  } catch {
    return null;
  }
}

const KEY = 'sluice-demo-settings';
