/** Access to files of the store in a worker, beside others who may still hold them. */

import { isNamed, removeUnused } from '../store/entry.js';
import { SluiceError } from '../errors.js';
import { sourceFailed } from './source.js';

/** Exclusive access. Whoever had it before may not have been ended quite: it is asked for a while. */
export async function openForWriting(file: FileSystemFileHandle): Promise<FileSystemSyncAccessHandle> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await file.createSyncAccessHandle();
    } catch (thrown) {
      if (!isNamed(thrown, 'NoModificationAllowedError') || performance.now() > until) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/**
 * Access for reading: beside other readers where the browser has that, else exclusive. `mode` is not in the standard; browsers without
 * it ignore it.
 */
export function accessForReading(file: FileSystemFileHandle): Promise<FileSystemSyncAccessHandle> {
  const shared: SharedAccess = file;
  return shared.createSyncAccessHandle({ mode: 'read-only' });
}

/** The same; `undefined` where another has the file for itself. */
export async function openForReading(file: FileSystemFileHandle): Promise<FileSystemSyncAccessHandle | undefined> {
  try {
    return await accessForReading(file);
  } catch (thrown) {
    if (isNamed(thrown, 'NoModificationAllowedError')) return undefined;
    throw thrown;
  }
}

/** Removes a model that is no use, as soon as nobody reads it. */
export async function removeStored(id: string): Promise<void> {
  if (await removeUnused(id, REMOVAL_MS)) return;
  throw sourceFailed('what is stored of the model cannot be removed: close other pages that use it', { reason: 'in use' });
}

/** What the browser's storage says; when it is full, how many bytes of the model it has no room for. */
export function storageFailed({ name }: DOMException, missingBytes?: number): SluiceError {
  if (name !== QUOTA_EXCEEDED) {
    return sourceFailed(`the model's files in the store cannot be used (${name}): close other pages that use it`, {
      reason: name,
    });
  }
  const missing = missingBytes === undefined ? 'a part' : `${missingBytes} bytes`;
  const message =
    `the browser's storage for this page is full, and ${missing} of the model are not stored yet: free room on the disk or remove ` +
    'models, then open it again; what is stored stays';
  return sourceFailed(message, { reason: 'full', ...(missingBytes !== undefined && { missingBytes }) });
}

/** Whether the disk is full, or the browser gives the page no more of it: as the browser says it, or as `storageFailed` does. */
export function isFull(thrown: unknown): boolean {
  if (thrown instanceof DOMException) return thrown.name === QUOTA_EXCEEDED;
  return thrown instanceof SluiceError && thrown.details['reason'] === 'full';
}

/** The name of the error of a disk that is full. */
export const QUOTA_EXCEEDED = 'QuotaExceededError';

interface SharedAccess {
  createSyncAccessHandle(options: { mode: 'read-only' }): Promise<FileSystemSyncAccessHandle>;
}

const PATIENCE_MS = 10_000;
const REMOVAL_MS = 3000;
