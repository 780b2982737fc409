/** The chat's frame: the composer, the buttons, what is said to those who do not see, failures, how far loading is. */

import { byId, setText } from './dom.js';
import { editLastQuestion } from './turns-view.js';

/** What a visitor does in the frame. */
export interface ChatActions {
  ask(text: string): void;
  stop(): void;
  newChat(): void;
  dismiss(): void;
}

const question = byId('question', HTMLTextAreaElement);
const send = byId('send', HTMLButtonElement);
const stop = byId('stop', HTMLButtonElement);
const status = byId('status', HTMLElement);
const spoken = byId('spoken', HTMLElement);
const failure = byId('failure', HTMLElement);
const loading = byId('loading', HTMLElement);
const bar = byId('bar', HTMLProgressElement);

/** Wires the frame; called once. */
export function wireChat(actions: ChatActions): void {
  const submit = (): void => {
    const text = question.value.trim();
    if (text === '' || send.hidden) return;
    question.value = '';
    actions.ask(text);
  };
  byId('ask', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  question.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    } else if (event.key === 'ArrowUp' && question.value === '' && !send.hidden) {
      event.preventDefault();
      editLastQuestion();
    }
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !stop.hidden && document.querySelector('dialog[open]') === null) actions.stop();
  });
  stop.addEventListener('click', actions.stop);
  byId('new-chat', HTMLButtonElement).addEventListener('click', () => {
    actions.newChat();
    question.focus();
  });
  byId('failure-close', HTMLButtonElement).addEventListener('click', () => {
    actions.dismiss();
    question.focus();
  });
}

/** Busy: an answer is under way; it can be stopped and no other be asked for. */
export function showBusy(busy: boolean): void {
  const hadFocus = document.activeElement === send || document.activeElement === stop;
  send.hidden = busy;
  stop.hidden = !busy;
  if (hadFocus) (busy ? stop : question).focus();
}

/** Gives a question back that could not be asked. */
export function returnQuestion(text: string): void {
  question.value = text;
  question.focus();
}

/** A sentence about what is going on; read out when it changes. */
export function showStatus(text: string): void {
  setText(status, text);
}

/** A finished answer for a screen reader: while it comes it would interrupt itself all the time. */
export function speak(text: string): void {
  spoken.textContent = text;
}

/** What went wrong and what to do; nothing to hide it. */
export function showFailure(shown?: { message: string; remedy: string; code: string }): void {
  failure.hidden = shown === undefined;
  setText(byId('failure-message', HTMLElement), shown?.message ?? '');
  setText(byId('failure-remedy', HTMLElement), shown?.remedy ?? '');
  setText(byId('failure-code', HTMLElement), shown?.code ?? '');
}

/** How far loading has got; nothing to hide it, no total: not known yet. */
export function showLoading(shown?: { text: string; done: number; total: number | undefined }): void {
  loading.hidden = shown === undefined;
  if (shown === undefined) return;
  setText(byId('loaded', HTMLElement), shown.text);
  if (shown.total === undefined) bar.removeAttribute('value');
  else Object.assign(bar, { max: shown.total, value: shown.done });
}
