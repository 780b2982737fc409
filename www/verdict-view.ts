/** The verdict on the chosen model, before anything is downloaded: does it run, what it takes, how fast; and the button that opens it. */

import { type StoredModel, capabilities } from 'sluice-llm';
import { button, byId, make, setText, showFigures } from './dom.js';
import { amount, percent, size, speed } from './format.js';
import { type Phase, type Session, nameOf } from './session.js';

/** What a visitor does with a verdict. */
export interface VerdictActions {
  open(): void;
  close(): void;
}

const place = byId('verdict', HTMLElement);
const choosing = byId('choosing', HTMLDetailsElement);
const title = make('h3');
const sentence = make('p');
const figures = make('dl', { className: 'figures' });
const open = button('Open', () => undefined, { className: 'main', id: 'open' });
const close = button('Close', () => undefined);

let shown: Phase = 'none';

/** Wires the card; called once. */
export function wireVerdict(actions: VerdictActions): void {
  open.addEventListener('click', actions.open);
  close.addEventListener('click', actions.close);
  place.append(title, sentence, figures, make('div', { className: 'buttons' }, open, close));
}

/** Shows what the session knows; `kept` is what is stored of its model. */
export function showVerdict(session: Session, kept: StoredModel | undefined): void {
  const { phase, source, card, fit, memory } = session;
  place.hidden = source === undefined;
  // Once one is chosen, the others make room.
  if (phase !== shown && (phase === 'none' || phase === 'chosen')) choosing.open = phase === 'none';
  shown = phase;
  if (source === undefined) return;
  setText(title, card?.name ?? nameOf(source));
  figures.hidden = card === undefined;
  open.hidden = phase === 'ready' || phase === 'none' || (phase === 'chosen' && fit?.refused !== null);
  open.disabled = phase !== 'chosen';
  if (card === undefined || fit === undefined) {
    setText(sentence, phase === 'none' ? 'It cannot be read.' : 'Reading the header…');
    return;
  }
  const left = 'files' in source ? 0 : card.fileBytes - Math.min(card.fileBytes, kept?.storedBytes ?? 0);
  setText(
    open,
    phase === 'opening'
      ? 'Opening…'
      : left === 0
        ? 'Open'
        : `${kept ? 'Continue the download' : 'Download and open'} (${size(left)})`,
  );
  setText(sentence, fit.refused === null ? fits(fit.residentShare ?? 0, memory) : fit.refused.message);
  showFigures(figures, [
    ['Kind', [card.architecture, card.parameters > 0 ? `${amount(card.parameters)} parameters` : ''].filter(Boolean).join(', ')],
    [
      'Download',
      'files' in source
        ? 'none: your file'
        : left === 0
          ? 'none: stored'
          : kept
            ? `${size(left)} of ${size(card.fileBytes)}`
            : size(left),
    ],
    ['Needs at least', fit.floorBytes === null ? 'more than there can be' : size(fit.floorBytes)],
    ['Stays in memory', fit.residentShare === null ? '–' : percent(fit.residentShare)],
    ['Expected speed', fit.predicted === null ? unknown(session) : speed(fit.predicted.decodeTokensPerSecond)],
  ]);
}

function fits(share: number, memory: number): string {
  return share === 1
    ? `It fits: in ${size(memory)} all of it stays in memory.`
    : `It runs in ${size(memory)}: ${percent(share)} stays, the rest streams.`;
}

function unknown({ fit, source }: Session): string {
  if (fit?.refused !== null || source === undefined || 'files' in source) return '–';
  return capabilities().opfs ? 'known once it is stored' : '–';
}
