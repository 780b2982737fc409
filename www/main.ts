/** The demo: opens the chosen model when it is first needed, streams the answer, shows figures and failures. */

import './style.css';
import { type Engine, type OpenOptions, type Progress, SluiceError, capabilities, open } from 'sluice-llm';
import {
  type Wishes,
  addToAnswer,
  hideLoading,
  onAsk,
  showBusy,
  showError,
  showFigures,
  showLoading,
  showStatus,
  startAnswer,
  wishes,
} from './view';

const DEFAULT_MODEL = '/models/smollm2-135m-q4_1.gguf';

interface Opened {
  engine: Engine;
  /** What it was opened with: another wish means another engine. */
  key: readonly unknown[];
}

let opened: Opened | undefined;
let controller: AbortController | undefined;

onAsk(
  () => void answer(),
  () => controller?.abort(),
  DEFAULT_MODEL,
);
showStatus(
  capabilities().build === null ? 'This browser cannot run Sluice.' : 'The model loads when you ask for the first time.',
);

async function answer(): Promise<void> {
  const { signal } = (controller = new AbortController());
  const wish = wishes();
  showError();
  startAnswer('');
  showBusy(true);
  try {
    const engine = await engineFor(wish, signal);
    startAnswer(wish.prompt);
    showStatus('Reading the prompt…');
    const options = defined({ maxTokens: wish.maxTokens, temperature: wish.temperature });
    for await (const { text, finishReason } of engine.generate(wish.prompt, { ...options, signal })) {
      addToAnswer(text);
      showStatus(
        finishReason === null ? 'Writing…' : finishReason === 'stop' ? 'Done.' : 'Done: the length that was allowed is reached.',
      );
      figures(engine);
    }
  } catch (error) {
    if (signal.aborted) showStatus('Stopped.');
    else await failed(error);
  } finally {
    showBusy(false);
  }
}

/** The engine for these wishes: the one there is, or a new one. */
async function engineFor(wish: Wishes, signal: AbortSignal): Promise<Engine> {
  const { url, file, memory, context } = wish;
  const key = [file ?? url, memory, context];
  if (opened && opened.key.every((part, i) => part === key[i])) return opened.engine;
  await close();
  showStatus('Loading the model…');
  showLoading('Asking for the file…', 0, undefined);
  const options: OpenOptions = { ...defined({ context, memory: memory === '' ? undefined : memory }), signal, onProgress };
  const engine = await open(file ?? url, options);
  hideLoading();
  opened = { engine, key };
  return engine;
}

function onProgress({ loadedBytes, totalBytes, bytesPerSecond }: Progress): void {
  const left = bytesPerSecond > 0 ? `, ${Math.ceil((totalBytes - loadedBytes) / bytesPerSecond)} s left` : '';
  showLoading(
    `${megabytes(loadedBytes)} of ${megabytes(totalBytes)} MB, ${megabytes(bytesPerSecond)} MB/s${left}`,
    loadedBytes,
    totalBytes,
  );
}

function figures({ stats, model, config }: Engine): void {
  showFigures([
    ['Model', model.name ?? model.architecture],
    ['Speed', `${stats.decodeTokensPerSecond.toFixed(1)} tokens/s`],
    ['Prompt', `${stats.promptTokens} tokens at ${stats.prefillTokensPerSecond.toFixed(1)} tokens/s`],
    ['First token after', `${(stats.ttftMs / 1000).toFixed(2)} s`],
    ['Answer', `${stats.generatedTokens} tokens`],
    ['Memory', `${megabytes(stats.memoryBytes)} of ${megabytes(stats.budgetBytes)} MB`],
    ['Context', `${stats.contextUsed} of ${config.context} tokens`],
    ['Build', `${stats.build}, ${stats.threads} thread${stats.threads === 1 ? '' : 's'}`],
  ]);
}

async function failed(error: unknown): Promise<void> {
  showStatus('No answer.');
  if (!(error instanceof SluiceError)) {
    showError('The page itself is at fault.', String(error));
    throw error;
  }
  showError(error.message, error.code);
  // After a fault of its own the engine is gone: the next question opens the model again.
  if (error.code === 'internal') await close();
}

async function close(): Promise<void> {
  const engine = opened?.engine;
  opened = undefined;
  await engine?.close();
}

/** The entries that have a value. */
function defined<T extends object>(entries: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
}
