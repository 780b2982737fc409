/** Choosing a model: the catalogue, an address, a file picked or dropped, and what is stored. */

import { type StoredModel, models } from 'sluice-llm';
import { OWN, PUBLIC, type Proposal } from './catalogue.js';
import { button, byId, make, setText } from './dom.js';
import { percent, size } from './format.js';
import { type Source, nameOf } from './session.js';

/** What a visitor does here. */
export interface ModelActions {
  choose(source: Source): void;
  /** Called before a stored model is deleted: whatever has it open must let go. */
  release(urls: readonly string[]): Promise<void>;
  fail(thrown: unknown): void;
}

const catalogue = byId('catalogue', HTMLUListElement);
const stored = byId('stored', HTMLUListElement);
const room = byId('room', HTMLElement);
const persist = byId('persist', HTMLButtonElement);
const drop = byId('drop', HTMLElement);

/** Wires the panel; called once. */
export async function wireModels(actions: ModelActions): Promise<void> {
  const url = byId('url', HTMLInputElement);
  byId('address', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    if (url.value.trim() !== '') actions.choose({ url: absolute(url.value.trim()) });
  });
  const picked = byId('file', HTMLInputElement);
  picked.addEventListener('change', () => {
    const files = [...(picked.files ?? [])];
    picked.value = ''; // so that the same file can be picked again
    if (files.length > 0) actions.choose({ files: inOrder(files) });
  });
  wireDrop(actions);
  persist.addEventListener('click', () => void models.persist().then(() => showStored(actions)));
  const begin = byId('begin', HTMLButtonElement);
  begin.addEventListener('click', () => actions.choose({ url: absolute(OWN.url) }));
  catalogue.replaceChildren(...PUBLIC.map((proposal) => proposed(proposal, actions)));
  await showStored(actions);
  // A plain static host may have no model of its own.
  const own = await fetch(absolute(OWN.url), { method: 'HEAD' }).then(
    ({ ok }) => ok,
    () => false,
  );
  if (own) catalogue.prepend(proposed(OWN, actions));
  else begin.hidden = true;
}

/** Shows what is stored, and how much room there is. */
export async function showStored(actions: ModelActions): Promise<void> {
  try {
    const [list, estimate] = await Promise.all([models.list(), models.estimate()]);
    list.sort((a, b) => a.id.localeCompare(b.id));
    const items = list.map((model) => storedItem(model, actions));
    stored.replaceChildren(...(items.length > 0 ? items : [make('li', { className: 'soft' }, 'Nothing yet.')]));
    persist.hidden = estimate === null || estimate.persisted || list.length === 0;
    setText(
      room,
      estimate === null
        ? NO_STORE
        : `${size(estimate.usedBytes)} of ${size(estimate.quotaBytes)} in use${estimate.persisted ? ', kept until you delete it' : ''}.`,
    );
  } catch (thrown) {
    actions.fail(thrown);
  }
}

/** An address as the engine and the store see it. */
export function absolute(url: string): string {
  return URL.canParse(url, document.baseURI) ? new URL(url, document.baseURI).href : url;
}

function proposed(proposal: Proposal, actions: ModelActions): HTMLLIElement {
  const choose = button(proposal.name, () => actions.choose({ url: absolute(proposal.url) }), { className: 'name' });
  return make('li', {}, choose, make('span', { className: 'soft' }, `${size(proposal.bytes)} · ${proposal.about}`));
}

function storedItem({ id, urls, storedBytes, totalBytes, complete }: StoredModel, actions: ModelActions): HTMLLIElement {
  const name = nameOf({ url: urls[0] ?? '' });
  const choose = button(name, () => urls[0] !== undefined && actions.choose({ url: urls[0] }), { className: 'name' });
  // The parts of a split model are opened by their addresses, which the field for one address does not take.
  choose.disabled = urls.length !== 1;
  const whole = complete
    ? `${size(storedBytes)}, complete`
    : totalBytes === null
      ? `${size(storedBytes)} so far`
      : `${size(storedBytes)} of ${size(totalBytes)}, ${percent(storedBytes / totalBytes)}`;
  const remove = button('Delete', () => {
    if (remove.dataset['sure'] === undefined) {
      remove.dataset['sure'] = '';
      remove.textContent = 'Really delete?';
      setTimeout(() => {
        delete remove.dataset['sure'];
        remove.textContent = 'Delete';
      }, 4000);
      return;
    }
    void actions
      .release(urls)
      .then(() => models.remove(id))
      .catch((thrown: unknown) => actions.fail(thrown))
      .then(() => showStored(actions));
  });
  remove.setAttribute('aria-label', `Delete ${name}`);
  return make('li', {}, choose, make('span', { className: 'soft' }, whole), remove);
}

function wireDrop(actions: ModelActions): void {
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false;
  document.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.hidden = false;
  });
  document.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) drop.hidden = true;
  });
  document.addEventListener('drop', (event) => {
    drop.hidden = true;
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    actions.choose({ files: inOrder(files) });
  });
}

/** Parts of a split model say their place in their names. */
function inOrder(files: File[]): File[] {
  return files.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
}

const NO_STORE =
  'This browser gives the page no storage for files (OPFS): a model behind an address is kept in memory and comes again at each visit. ' +
  'A file of yours is read where it is.';
