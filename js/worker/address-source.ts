/** What reads a model behind addresses: the store where there is one and it is wanted, else the server alone. */

import { SluiceError } from '../errors.js';
import type { SourceSpec } from '../protocol.js';
import { RangeSource } from './range-source.js';
import type { Source } from './source.js';
import { StoreEntry, hasStore } from '../store/entry.js';
import { modelId } from '../store/layout.js';
import { isFull, removeStored, storageFailed } from './store-access.js';
import { ARRIVING_BUFFER_BYTES, StoredSource } from './stored-source.js';

type Addresses = SourceSpec & { kind: 'range' };

/** Opens the model; `onDownload` hears how much of it has come. */
export async function openAddresses(
  spec: Addresses,
  onDownload: (loadedBytes: number, totalBytes: number) => void,
): Promise<Source> {
  const { urls, headers, credentials, cache } = spec;
  const fromServer = (): Promise<RangeSource> => RangeSource.open(urls, { headers, credentials, onDownload });
  if (cache === 'none') return fromServer();
  const why = await whyNoStore(urls);
  if (why !== undefined) return withAdvice(await fromServer(), why);
  const stored = await orFull(StoredSource.open({ urls, headers, credentials, onDownload }));
  if (stored instanceof SluiceError) {
    if (await hasNoBlock(urls)) await forgetAddresses(urls).catch(() => undefined); // another tab may use it
    return withAdvice(await fromServer(), stored.message);
  }
  const short = await shortOfRoom(stored);
  if (short === undefined) return stored;
  stored.close();
  // What an earlier visit stored goes on when there is room again; what another tab uses stays.
  if (stored.foundBytes === 0) await forgetAddresses(urls).catch(() => undefined);
  return withAdvice(await fromServer(), short);
}

/** Opens the model to read its header, as it would be opened: from the store if all of it is there, and nothing is stored. */
export async function openHeader(
  spec: Addresses,
  onDownload: (loadedBytes: number, totalBytes: number) => void,
): Promise<Source> {
  const { urls, headers, credentials } = spec;
  const willBeStored = spec.cache !== 'none' && (await whyNoStore(urls)) === undefined;
  if (willBeStored) {
    const stored = await StoredSource.complete({ urls, headers, credentials, onDownload });
    if (stored !== undefined) return stored;
  }
  const storedBufferBytes = willBeStored ? ARRIVING_BUFFER_BYTES : undefined;
  return RangeSource.open(urls, { headers, credentials, onDownload, storedBufferBytes });
}

/** Forgets what is stored of the model. */
export async function forgetAddresses(urls: readonly string[]): Promise<void> {
  if ((await whyNoStore(urls)) === undefined) await removeStored(await modelId(urls));
}

/** Why nothing can be stored; `undefined` when it can. */
async function whyNoStore(urls: readonly string[]): Promise<string | undefined> {
  if (!urls.every((url) => /^https?:/.test(url))) return 'what is not on a server is not stored';
  const nothing = 'this browser gives the page no storage for files (OPFS), as in some private windows';
  if (!hasStore()) return nothing;
  if (!('createWritable' in FileSystemFileHandle.prototype && 'createSyncAccessHandle' in FileSystemFileHandle.prototype))
    return nothing;
  try {
    await navigator.storage.getDirectory();
    return undefined;
  } catch {
    return nothing;
  }
}

/** What is opened; or what the browser says that has not even room for the beginning. */
async function orFull(opening: Promise<StoredSource>): Promise<StoredSource | SluiceError> {
  try {
    return await opening;
  } catch (thrown) {
    const failed = thrown instanceof DOMException ? storageFailed(thrown) : thrown;
    if (failed instanceof SluiceError && isFull(failed)) return failed;
    throw failed;
  }
}

/** Is nothing of the model stored that counts? */
async function hasNoBlock(urls: readonly string[]): Promise<boolean> {
  const entry = await StoreEntry.find(await modelId(urls));
  return entry === undefined || (await entry.stored()).storedBytes === 0;
}

/** Why the rest of the model does not fit into the store; `undefined` when it does, or nobody knows. */
async function shortOfRoom(source: StoredSource): Promise<string | undefined> {
  const missing = source.missingBytes;
  if (missing === 0) return undefined; // asking the browser takes a while
  const { quota, usage } = await navigator.storage.estimate().catch((): StorageEstimate => ({}));
  if (missing === undefined || quota === undefined || usage === undefined || missing <= quota - usage) return undefined;
  return `the browser gives this page room for ${Math.max(0, quota - usage)} bytes more, and storing the model takes ${missing}`;
}

/** The same source, which says why it is not the store. */
function withAdvice(source: Source, why: string): Source {
  return Object.assign(source, { advice: why });
}
