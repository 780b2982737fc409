/** The models that the store keeps: list, remove, import, and what room there is. */

import { SluiceError } from './errors.js';
import { absoluteUrl } from './given.js';
import { BlockTable, ENTRY_BYTES } from './store/block-table.js';
import { Checksum } from './store/checksum.js';
import { StoreEntry, entryIds, hasStore, isNamed, removeEntry, removeUnused } from './store/entry.js';
import { BLOCK_BYTES, SEGMENT_BYTES, blockLength, blocksOf, modelId } from './store/layout.js';
import { whileUnused } from './store/locks.js';

/** A model in the store. */
export interface StoredModel {
  /** For `models.remove`. */
  id: string;
  /** Addresses of its files, without queries. */
  urls: readonly string[];
  storedBytes: number;
  /** `null` while the size of a file is not known. */
  totalBytes: number | null;
  /** All of it is there: opening it asks no server. */
  complete: boolean;
}

/** Storage of the page. */
export interface StorageEstimate {
  /** Bytes that are taken, by whatever. */
  usedBytes: number;
  /** Bytes that the browser allows in all. */
  quotaBytes: number;
  /** The browser will not clear it by itself. */
  persisted: boolean;
}

/** The models in the store. */
export const models = {
  list,
  remove,
  persist,
  estimate,
  import: importFiles,
};

/** What is stored, in no order; what a download that was interrupted has left counts too. */
async function list(): Promise<StoredModel[]> {
  const found: StoredModel[] = [];
  for (const id of hasStore() ? await entryIds() : []) {
    const entry = await StoreEntry.find(id);
    if (entry === undefined) continue;
    const { storedBytes, totalBytes } = await entry.stored();
    found.push({
      id,
      urls: entry.facts.files.map(({ url }) => url),
      storedBytes,
      totalBytes,
      complete: storedBytes === totalBytes,
    });
  }
  return found;
}

/**
 * Removes a model from the store; nothing happens when it is not there. A model that is open, here or in another tab, is not removed: it
 * fails with `misuse`, after waiting a moment for an engine that was just closed.
 */
async function remove(id: string): Promise<void> {
  if (!hasStore()) return;
  if (!/^[0-9a-f]{32}$/.test(id)) throw new SluiceError('invalid_option', "'id' is not one that `list` gave", { key: 'id' });
  if (await removeUnused(id, CLOSING_MS).catch(notRemoved)) return;
  throw inUse('removed');
}

function notRemoved(thrown: unknown): never {
  if (!(thrown instanceof DOMException)) throw thrown;
  throw new SluiceError('misuse', `the model cannot be removed (${thrown.name}): close whatever has it open`, {
    reason: thrown.name,
  });
}

function inUse(what: string): SluiceError {
  return new SluiceError(
    'misuse',
    `the model is open and cannot be ${what}: close whatever has it open, here or in another tab`,
    {
      reason: 'open',
    },
  );
}

/** Asks the browser to keep what is stored until the user removes it; some ask the user. True when it will. */
function persist(): Promise<boolean> {
  return hasStore() ? navigator.storage.persist() : Promise.resolve(false);
}

/** What room there is; `null` where there is no store. */
async function estimate(): Promise<StorageEstimate | null> {
  if (!hasStore()) return null;
  const [{ usage = 0, quota = 0 }, persisted] = await Promise.all([navigator.storage.estimate(), navigator.storage.persisted()]);
  return { usedBytes: usage, quotaBytes: quota, persisted };
}

/**
 * Stores picked files as if they had been downloaded from `urls`, so that opening those asks no server. Several files are those of a split
 * model, in order. What was stored for these addresses is replaced.
 */
async function importFiles(files: Blob | readonly Blob[], urls: string | URL | readonly (string | URL)[]): Promise<StoredModel> {
  const blobs = files instanceof Blob ? [files] : files;
  if (!Array.isArray(blobs) || !blobs.every((blob) => blob instanceof Blob)) {
    throw new SluiceError('invalid_option', "'files' must be a File or Blob, or a list of these", { key: 'files' });
  }
  const addresses = (Array.isArray(urls) ? urls : [urls]).map((url: string | URL) => absoluteUrl(url, 'urls'));
  if (blobs.length === 0 || blobs.length !== addresses.length) {
    throw new SluiceError(
      'invalid_option',
      `${blobs.length} files and ${addresses.length} addresses: there must be one for each`,
      { key: 'urls' },
    );
  }
  if (!hasStore()) throw new SluiceError('misuse', 'this browser gives the page no storage for files (OPFS)');
  const totalBytes = blobs.reduce((sum, { size }) => sum + size, 0);
  const { usedBytes = 0, quotaBytes = Infinity } = (await estimate()) ?? {};
  const id = await modelId(addresses);
  // What is replaced goes first.
  const replaced = await (await StoreEntry.find(id))?.stored();
  const roomBytes = quotaBytes - usedBytes + (replaced?.storedBytes ?? 0);
  if (totalBytes > roomBytes) throw full(totalBytes, roomBytes);
  const stored = await whileUnused(id, CLOSING_MS, async () => {
    try {
      await removeEntry(id);
      const entry = await StoreEntry.open(addresses);
      // Until all of it is there, nothing of it counts.
      entry.facts.stale = true;
      await entry.saveFacts();
      for (const [file, blob] of blobs.entries()) await copyIn(entry, file, blob);
      delete entry.facts.stale;
      await entry.saveFacts();
      return { id, urls: entry.facts.files.map(({ url }) => url), storedBytes: totalBytes, totalBytes, complete: true };
    } catch (thrown) {
      await removeEntry(id).catch(() => undefined); // what went wrong first is what matters
      if (isNamed(thrown, 'QuotaExceededError')) throw full(totalBytes, roomBytes);
      throw thrown;
    }
  });
  if (stored === undefined) throw inUse('replaced');
  return stored.done;
}

async function copyIn(entry: StoreEntry, file: number, blob: Blob): Promise<void> {
  const table = new BlockTable();
  for (let start = 0; start < blob.size; start += SEGMENT_BYTES) {
    const segment = await entry.segmentFile(file, start / SEGMENT_BYTES, true);
    const stream = await segment.createWritable();
    try {
      for (let at = start; at < Math.min(start + SEGMENT_BYTES, blob.size); at += BLOCK_BYTES) {
        const block = at / BLOCK_BYTES;
        const bytes = new Uint8Array(await blob.slice(at, at + blockLength(block, blob.size)).arrayBuffer());
        const sum = new Checksum();
        sum.update(bytes);
        table.set(block, sum.value());
        await stream.write(bytes);
      }
      await stream.close();
    } catch (thrown) {
      await stream.abort().catch(() => undefined); // what it wrote goes at once
      throw thrown;
    }
  }
  const entries = new Uint8Array(blocksOf(blob.size) * ENTRY_BYTES);
  for (let block = 0; block < blocksOf(blob.size); block += 1) entries.set(table.entry(block), block * ENTRY_BYTES);
  const stream = await (await entry.tableFile(file)).createWritable();
  await stream.write(entries);
  await stream.close();
  Object.assign(entry.facts.files[file] ?? {}, { size: blob.size });
}

function full(needed: number, available: number): SluiceError {
  const message = `storing the model takes ${needed} bytes, the browser gives this page ${Math.max(0, available)}: remove models or free the disk`;
  return new SluiceError('source_failed', message, { reason: 'full', neededBytes: needed });
}

/** How long an engine that was closed may take to end. */
const CLOSING_MS = 2000;
