/** The demo: wires the parts of the page to one session and one conversation. */

import './style.css';
import './panels.css';
import { type StoredModel, capabilities, models } from 'sluice-llm';
import { answer } from './answering.js';
import { returnQuestion, showBusy, showFailure, showLoading, showStatus, speak, wireChat } from './chat-view.js';
import { Conversation, type Turn } from './conversation.js';
import { showDial, wireDial } from './dial-view.js';
import { byId, setText } from './dom.js';
import { refreshFlow, wireFlow } from './flow-view.js';
import { progress } from './format.js';
import { type ModelActions, showStored, wireModels } from './models-view.js';
import { startOffline } from './offline.js';
import { remedy } from './remedies.js';
import { showReasons, showRun } from './run-view.js';
import { Session, type Source, nameOf } from './session.js';
import { recall, remember, wireSettings, wireTheme, wireViews } from './settings-view.js';
import { loadMarkdown, showLastAnswer, showTurns } from './turns-view.js';
import { showVerdict, wireVerdict } from './verdict-view.js';

const session = new Session(changed);
const conversation = Conversation.restored(recall('sluice-demo-chat', 'sessionStorage'));
let controller: AbortController | undefined;
let answering: Promise<void> | undefined;
let kept: StoredModel | undefined;
/** It was looked up once what is stored, after the download had ended. */
let looked = false;

const settings = wireSettings();
const view = wireViews();
wireTheme(refreshFlow);
wireFlow(
  () => session.engine,
  () => controller !== undefined,
);
wireVerdict({ open: () => void open(), close: () => void close() });
wireDial(session, {
  plan: (memory) => session.plan(memory),
  settle: () => void settle(),
  change: (options) => void session.change(options).then(() => (session.failure === undefined ? settle() : undefined)),
});
wireChat({ ask, stop, newChat, dismiss });
const modelActions: ModelActions = {
  choose: (source) => void choose(source),
  release,
  fail: (thrown) => void session.fail(thrown),
};
void wireModels(modelActions).then(resume);
showReasons();
const offline = startOffline((text) => setText(byId('offline', HTMLElement), text));
changed();
turns();
setInterval(() => showRun(session.engine?.stats), 250);
if (capabilities().build === null) showStatus('This browser cannot run Sluice.');
// For the curious, and to check what the page shows: `sluice.engine.stats`.
Object.assign(globalThis, { sluice: session });

function changed(): void {
  showVerdict(session, kept);
  showDial(session);
  showRun(session.engine?.stats);
  const { failure, phase } = session;
  byId('begin', HTMLButtonElement).disabled = session.source !== undefined;
  showFailure(
    failure && {
      message: failure.message,
      remedy: failure.error === null ? '' : remedy(failure.error.code, failure.error.details),
      code: failure.error?.code ?? '',
    },
  );
  const { download, load } = session.progress;
  const current =
    download !== undefined && download.loadedBytes < download.totalBytes && kept?.complete !== true
      ? download
      : phase === 'opening'
        ? load
        : undefined;
  if (current !== undefined) {
    const { loadedBytes, totalBytes, bytesPerSecond, secondsLeft, stage } = current;
    const text = `${stage === 'download' ? 'Download' : 'Into memory'}: ${progress(loadedBytes, totalBytes, bytesPerSecond, secondsLeft)}`;
    showLoading({ text, done: loadedBytes, total: totalBytes });
  } else {
    showLoading(
      phase === 'opening' || phase === 'inspecting' ? { text: 'Asking for the file…', done: 0, total: undefined } : undefined,
    );
  }
  if (download === undefined || download.loadedBytes < download.totalBytes) looked = false;
  else if (!looked && kept?.complete === false) {
    looked = true;
    void look();
  }
}

async function choose(source: Source): Promise<void> {
  await halt();
  view('model');
  kept = undefined;
  rememberModel('url' in source ? source.url : null);
  showStatus('Reading the header…');
  // On a first visit, so that the engine's files are kept too.
  await Promise.race([offline, new Promise((resolve) => setTimeout(resolve, 2000))]);
  await session.choose(source);
  await look();
  showStatus(session.phase === 'chosen' ? `${nameOf(source)} is chosen.` : '');
}

/** Looks up what is stored of the chosen model. */
async function look(): Promise<void> {
  const { source } = session;
  const list = await models.list().catch(() => []);
  kept =
    source && 'url' in source ? list.find(({ urls }) => urls.length === 1 && urls[0] === withoutQuery(source.url)) : undefined;
  await showStored(modelActions);
  changed();
  // The speed of what streams is known once it is stored.
  if (kept?.complete === true && session.fit?.refused === null && session.fit.predicted === null) await session.review();
}

async function open(): Promise<void> {
  showStatus('Opening the model…');
  loadMarkdown().catch(() => undefined); // it is asked for again with the answer
  await session.open();
  showStatus(session.phase === 'ready' ? 'Ready: ask something.' : '');
  if (session.phase === 'ready') view('chat');
  await look();
}

async function close(): Promise<void> {
  await halt();
  await session.leave();
  rememberModel(null);
  showStatus('');
}

/** The dial was let go of: an engine that is open goes on under the new budget, the conversation stays. */
async function settle(): Promise<void> {
  if (session.phase !== 'ready') return;
  await halt();
  showStatus('Reopening under the new budget…');
  await session.reopen();
  showStatus(session.phase === 'ready' ? 'Ready: the conversation goes on.' : '');
}

function ask(text: string): void {
  if (session.source === undefined || session.phase === 'none' || session.phase === 'inspecting') {
    returnQuestion(text);
    showStatus('Choose a model first.');
    view('model');
    return;
  }
  run(conversation.ask(text));
}

function run(turn: Turn): void {
  answering = (async () => {
    controller = new AbortController();
    showBusy(true);
    turns();
    const news = { onStatus: showStatus, onAnswer: showLastAnswer };
    await answer(session, conversation, turn, settings(), controller.signal, news);
    controller = undefined;
    showBusy(false);
    turns();
    speak(turn.text);
    void look();
  })();
}

function stop(): void {
  controller?.abort();
  if (session.phase === 'opening') void session.shut();
}

/** Stops an answer and waits until it has ended. */
async function halt(): Promise<void> {
  stop();
  await answering;
}

function turns(): void {
  remember('sluice-demo-chat', conversation.saved(), 'sessionStorage');
  showTurns(conversation.turns, controller !== undefined, {
    retry: (index) => run(conversation.retry(index)),
    edit: (index, text) => run(conversation.edit(index, text)),
  });
}

function newChat(): void {
  void halt().then(() => {
    conversation.clear();
    turns();
    showStatus('A new chat.');
  });
}

function dismiss(): void {
  session.failure = undefined;
  changed();
}

/** Lets go of a stored model that is to be deleted. */
async function release(urls: readonly string[]): Promise<void> {
  if (session.source && 'url' in session.source && urls.includes(withoutQuery(session.source.url))) await close();
}

/** After a reload: the model of before is chosen again, so that its download can go on. */
async function resume(): Promise<void> {
  const last = recall(LAST, 'sessionStorage') ?? recall(LAST);
  if (last === null || session.source !== undefined) return;
  const list = await models.list().catch(() => []);
  if (list.some(({ urls }) => urls[0] === withoutQuery(last))) await choose({ url: last });
}

/** An address with a query is one for this tab alone: a signed link is a secret. */
function rememberModel(url: string | null): void {
  const isPlain = url !== null && url === withoutQuery(url);
  remember(LAST, isPlain ? url : null);
  remember(LAST, isPlain ? null : url, 'sessionStorage');
}

function withoutQuery(url: string): string {
  return URL.canParse(url) ? `${new URL(url).origin}${new URL(url).pathname}` : url;
}

const LAST = 'sluice-demo-model';
