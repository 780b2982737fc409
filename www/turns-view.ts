/** The turns of a conversation as elements: questions with editing, answers as Markdown while they come. */

import type { Turn } from './conversation.js';
import { button, byId, make, setText } from './dom.js';

/** What a visitor does with a turn. */
export interface TurnActions {
  retry(index: number): void;
  edit(index: number, text: string): void;
}

const list = byId('turns', HTMLOListElement);
const scroll = byId('scroll', HTMLElement);
const welcome = byId('welcome', HTMLElement);
let markdown: ReturnType<typeof loadMarkdown> | undefined;
let drawnAt = 0;

/** Shows all turns anew; `busy`: an answer is under way, and nothing can be changed. */
export function showTurns(turns: readonly Turn[], busy: boolean, actions: TurnActions): void {
  welcome.hidden = turns.length > 0;
  list.replaceChildren(...turns.map((turn, index) => (turn.role === 'user' ? question(turn, index) : answer(turn, index))));
  scroll.scrollTop = scroll.scrollHeight;

  function question(turn: Turn, index: number): HTMLElement {
    const body = make('div', { className: 'body' }, turn.text);
    const item = make('li', { className: 'question' }, make('h3', { className: 'unseen' }, 'You'), body);
    const tools = make('div', { className: 'tools' }, copyButton(turn));
    const edit = button('Edit', () => editing(item, body, tools, turn, (text) => actions.edit(index, text)), { disabled: busy });
    tools.prepend(edit);
    item.append(tools);
    return item;
  }

  function answer(turn: Turn, index: number): HTMLElement {
    const body = make('div', { className: 'body' });
    const retry = button('Retry', () => actions.retry(index), { disabled: busy });
    const note = make('span', { className: 'note soft' });
    const item = make(
      'li',
      { className: 'answer' },
      make('h3', { className: 'unseen' }, 'Answer'),
      body,
      make('div', { className: 'tools' }, retry, copyButton(turn), note),
    );
    draw(item, turn);
    return item;
  }
}

/** Shows what the last answer has become; the longer it is, the less often it is drawn. */
export function showLastAnswer(turn: Turn): void {
  const item = list.lastElementChild;
  const now = performance.now();
  if (!(item instanceof HTMLElement) || (turn.ending === null && now - drawnAt < Math.min(300, 30 + turn.text.length / 20)))
    return;
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
  draw(item, turn);
  if (atEnd) scroll.scrollTop = scroll.scrollHeight;
}

/** Begins editing the last question. */
export function editLastQuestion(): void {
  const questions = list.querySelectorAll<HTMLButtonElement>('.question .tools button');
  questions[questions.length - 2]?.click();
}

/** Loads what draws Markdown: with a model, as a visitor who has none needs none. */
export function loadMarkdown(): Promise<{ render: (target: HTMLElement, text: string) => void }> {
  return (markdown ??= import('./markdown.js'));
}

function draw(item: HTMLElement, turn: Turn): void {
  const body = item.querySelector<HTMLElement>('.body');
  const note = item.querySelector('.note');
  if (body === null || note === null) return;
  drawnAt = performance.now();
  item.setAttribute('aria-busy', String(turn.ending === null));
  setText(note, [ENDINGS[turn.ending ?? 'done'], turn.note].filter(Boolean).join(' · '));
  if (turn.text === '') {
    body.textContent = turn.ending === null ? '…' : '';
    return;
  }
  void loadMarkdown().then(
    ({ render }) => render(body, turn.text),
    () => {
      markdown = undefined; // offline before it was kept: plain text, and another try with the next answer
      body.textContent = turn.text;
    },
  );
}

const ENDINGS = { done: '', length: 'the longest answer allowed', stopped: 'stopped', failed: 'failed' } as const;

function copyButton(turn: Turn): HTMLButtonElement {
  const element = button('Copy', () => {
    const say = (text: string): void => {
      element.textContent = text;
      setTimeout(() => (element.textContent = 'Copy'), 1500);
    };
    navigator.clipboard.writeText(turn.text).then(
      () => say('Copied'),
      () => say('Not allowed'),
    );
  });
  return element;
}

function editing(item: HTMLElement, body: HTMLElement, tools: HTMLElement, turn: Turn, send: (text: string) => void): void {
  const text = make('textarea', { value: turn.text, rows: 3, ariaLabel: 'Edit the question' });
  const end = (): void => {
    form.remove();
    body.hidden = tools.hidden = false;
    tools.querySelector('button')?.focus();
  };
  const form = make(
    'form',
    {},
    text,
    make('div', { className: 'buttons' }, make('button', { className: 'main' }, 'Send'), button('Cancel', end)),
  );
  const submit = (): void => {
    if (text.value.trim() !== '') send(text.value.trim());
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  text.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      end();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  body.hidden = tools.hidden = true;
  item.append(form);
  text.focus();
}
