/** The page's elements: what is read from them and what is shown in them. It knows nothing of engines. */

/** One figure: what it is and its value as people read it. */
export type Figure = readonly [name: string, value: string];

/** What the form says. */
export interface Wishes {
  url: string;
  file: File | undefined;
  memory: string;
  context: number | undefined;
  maxTokens: number | undefined;
  temperature: number | undefined;
  prompt: string;
}

const form = element('form', HTMLFormElement);
const url = element('url', HTMLInputElement);
const file = element('file', HTMLInputElement);
const memory = element('memory', HTMLInputElement);
const context = element('context', HTMLInputElement);
const maxTokens = element('max-tokens', HTMLInputElement);
const temperature = element('temperature', HTMLInputElement);
const prompt = element('prompt', HTMLTextAreaElement);
const go = element('go', HTMLButtonElement);
const stop = element('stop', HTMLButtonElement);
const loading = element('loading', HTMLElement);
const bar = element('bar', HTMLProgressElement);
const loaded = element('loaded', HTMLElement);
const error = element('error', HTMLElement);
const errorMessage = element('error-message', HTMLElement);
const errorCode = element('error-code', HTMLElement);
const status = element('status', HTMLElement);
const answer = element('answer', HTMLOutputElement);
const figures = element('figures', HTMLElement);

/** Calls back when the user wants an answer, or wants it to stop. */
export function onAsk(ask: () => void, halt: () => void, defaultUrl: string): void {
  url.value = defaultUrl;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    ask();
  });
  stop.addEventListener('click', halt);
  // The last choice counts: an address that is typed takes the place of a picked file.
  url.addEventListener('input', () => {
    file.value = '';
  });
}

/** What the form says now. */
export function wishes(): Wishes {
  return {
    url: url.value.trim(),
    file: file.files?.[0],
    memory: memory.value.trim(),
    context: numberIn(context),
    maxTokens: numberIn(maxTokens),
    temperature: numberIn(temperature),
    prompt: prompt.value,
  };
}

/** Busy: the answer can be stopped and no other be asked for. */
export function showBusy(busy: boolean): void {
  go.disabled = busy;
  stop.disabled = !busy;
  answer.setAttribute('aria-busy', String(busy));
  if (!busy) loading.hidden = true;
}

/** How far loading has got; `total` undefined: not known yet. */
export function showLoading(text: string, done: number, total: number | undefined): void {
  loading.hidden = false;
  loaded.textContent = text;
  if (total === undefined) {
    bar.removeAttribute('value');
    return;
  }
  bar.max = total;
  bar.value = done;
}

export function hideLoading(): void {
  loading.hidden = true;
}

/** A sentence about what is going on. */
export function showStatus(text: string): void {
  status.textContent = text;
}

/** Starts a new answer with the text that it continues. */
export function startAnswer(text: string): void {
  answer.textContent = text;
}

/** More of the answer. */
export function addToAnswer(text: string): void {
  answer.append(text);
}

/** What went wrong; nothing to hide it. */
export function showError(message?: string, code = ''): void {
  error.hidden = message === undefined;
  errorMessage.textContent = message ?? '';
  errorCode.textContent = code;
}

/** Replaces the figures. */
export function showFigures(list: readonly Figure[]): void {
  figures.replaceChildren(
    ...list.map(([name, value]) => {
      const [group, term, detail] = [document.createElement('div'), document.createElement('dt'), document.createElement('dd')];
      term.textContent = name;
      detail.textContent = value;
      group.append(term, detail);
      return group;
    }),
  );
}

function numberIn(input: HTMLInputElement): number | undefined {
  return input.value === '' ? undefined : input.valueAsNumber;
}

function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (found instanceof type) return found;
  throw new Error(`the page has no ${id}`);
}
