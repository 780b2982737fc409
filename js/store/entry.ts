/** A model's folder in the store: its facts, its tables, its segments. Who may write is decided elsewhere. */

import { BlockTable } from './block-table.js';
import {
  FACTS_NAME,
  type Facts,
  type FileFacts,
  STORE_FOLDER,
  blockLength,
  blocksOf,
  modelId,
  publicUrl,
  segmentName,
  tableName,
} from './layout.js';
import { whileUnused } from './locks.js';

/** A model's folder. */
export class StoreEntry {
  readonly id: string;
  readonly facts: Facts;
  /** No facts are stored of it, so that nothing in its folder can be trusted. */
  fresh: boolean;
  readonly #folder: FileSystemDirectoryHandle;
  #saving: Promise<void> = Promise.resolve();

  private constructor(id: string, folder: FileSystemDirectoryHandle, facts: Facts, fresh: boolean) {
    this.id = id;
    this.#folder = folder;
    this.facts = facts;
    this.fresh = fresh;
  }

  /** The entry of the model at `urls`, made where there is none. */
  static async open(urls: readonly string[]): Promise<StoreEntry> {
    const id = await modelId(urls);
    const folder = await (await storeFolder(true)).getDirectoryHandle(id, { create: true });
    const known = await readFacts(folder);
    const addresses = urls.map(publicUrl);
    const fits = known?.files.length === urls.length && known.files.every(({ url }, file) => url === addresses[file]);
    if (fits) return new StoreEntry(id, folder, known, false);
    const files = addresses.map((url) => ({ url, size: null, etag: null, modified: null }));
    return new StoreEntry(id, folder, { version: 1, files }, true);
  }

  /** The entry with this id, if there is one that can be read. */
  static async find(id: string): Promise<StoreEntry | undefined> {
    try {
      const folder = await (await storeFolder(false)).getDirectoryHandle(id);
      const facts = await readFacts(folder);
      return facts === undefined ? undefined : new StoreEntry(id, folder, facts, false);
    } catch (thrown) {
      if (isNamed(thrown, 'NotFoundError')) return undefined;
      throw thrown;
    }
  }

  /** The table of a file, as far as it is stored. */
  async table(file: number): Promise<BlockTable> {
    if (this.fresh) return new BlockTable();
    return BlockTable.from(await readBytes(this.#folder, tableName(file)), this.facts.files[file]?.size ?? undefined);
  }

  /** Removes whatever is in the folder, for the one who writes. */
  async clear(): Promise<void> {
    const names: string[] = [];
    for await (const name of this.#folder.keys()) names.push(name);
    for (const name of names) await patiently(() => this.#folder.removeEntry(name));
  }

  /** The handle of a table, made where there is none. */
  tableFile(file: number): Promise<FileSystemFileHandle> {
    return this.#folder.getFileHandle(tableName(file), { create: true });
  }

  /** The handle of a segment. */
  segmentFile(file: number, segment: number, create: boolean): Promise<FileSystemFileHandle> {
    return this.#folder.getFileHandle(segmentName(file, segment), { create });
  }

  /** Writes the facts; they are replaced as a whole or not at all, and by the newest last. */
  saveFacts(): Promise<void> {
    const saved = this.#saving.then(() => this.#save());
    this.#saving = saved.catch(() => undefined);
    return saved;
  }

  async #save(): Promise<void> {
    const handle = await this.#folder.getFileHandle(FACTS_NAME, { create: true });
    const stream = await handle.createWritable();
    await stream.write(JSON.stringify(this.facts));
    await stream.close();
    this.fresh = false;
  }

  /** Reads the facts again, which another tab may have written. */
  async reload(): Promise<void> {
    const known = await readFacts(this.#folder);
    if (known === undefined) return;
    this.fresh = false;
    if (known.stale === true) this.facts.stale = true;
    known.files.forEach((facts, file) => Object.assign(this.facts.files[file] ?? {}, facts));
  }

  /** Bytes that are stored, and bytes of all files (`null` while a file's size is not known). */
  async stored(): Promise<{ storedBytes: number; totalBytes: number | null }> {
    let [storedBytes, totalBytes]: [number, number | null] = [0, 0];
    for (const [file, { size }] of this.facts.files.entries()) {
      storedBytes += storedBytesOf(await this.table(file), size);
      totalBytes = totalBytes === null || size === null ? null : totalBytes + size;
    }
    return { storedBytes, totalBytes };
  }
}

/** Bytes of the blocks in `table`. */
export function storedBytesOf(table: BlockTable, size: number | null): number {
  const last = size === null ? 0 : blocksOf(size) - 1;
  const short = size !== null && table.has(last) ? blockLength(0, null) - blockLength(last, size) : 0;
  return table.count * blockLength(0, null) - short;
}

/** Whether this browser has what a store is made of. */
export function hasStore(): boolean {
  return typeof globalThis.navigator?.storage?.getDirectory === 'function' && navigator.locks !== undefined;
}

/** The ids of all models. */
export async function entryIds(): Promise<string[]> {
  try {
    const ids: string[] = [];
    for await (const name of (await storeFolder(false)).keys()) ids.push(name);
    return ids;
  } catch (thrown) {
    if (isNamed(thrown, 'NotFoundError')) return [];
    throw thrown;
  }
}

/** Removes a model's folder with all that is in it; false when somebody still uses it after `waitMs`. */
export async function removeUnused(id: string, waitMs: number): Promise<boolean> {
  return (await whileUnused(id, waitMs, () => removeEntry(id))) !== undefined;
}

/** Removes a model's folder, which nobody uses. */
export async function removeEntry(id: string): Promise<void> {
  await patiently(async () => (await storeFolder(false)).removeEntry(id, { recursive: true }));
}

/** Removes something. The browser may hold a file for a moment after the worker that used it has ended. */
async function patiently(remove: () => Promise<void>): Promise<void> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await remove();
    } catch (thrown) {
      if (isNamed(thrown, 'NotFoundError')) return;
      if (failures === REMOVE_RETRIES) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Is this a `DOMException` of that name? */
export function isNamed(thrown: unknown, name: string): boolean {
  return thrown instanceof DOMException && thrown.name === name;
}

async function storeFolder(create: boolean): Promise<FileSystemDirectoryHandle> {
  return (await navigator.storage.getDirectory()).getDirectoryHandle(STORE_FOLDER, { create });
}

async function readFacts(folder: FileSystemDirectoryHandle): Promise<Facts | undefined> {
  try {
    const facts = JSON.parse(new TextDecoder().decode(await readBytes(folder, FACTS_NAME))) as Facts; // the version says so
    return facts.version === 1 && Array.isArray(facts.files) && facts.files.every(isFileFacts) ? facts : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof TypeError) return undefined; // no JSON, or other JSON
    throw thrown;
  }
}

function isFileFacts({ url, size, etag, modified }: FileFacts): boolean {
  const isText = (value: unknown): boolean => value === null || typeof value === 'string';
  return (
    typeof url === 'string' && (size === null || (Number.isSafeInteger(size) && size >= 0)) && isText(etag) && isText(modified)
  );
}

/** A file's bytes, empty where there is none. A file that is being written may have to be asked again. */
async function readBytes(folder: FileSystemDirectoryHandle, name: string): Promise<ArrayBuffer> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await (await (await folder.getFileHandle(name)).getFile()).arrayBuffer();
    } catch (thrown) {
      if (isNamed(thrown, 'NotFoundError')) return new ArrayBuffer(0);
      if (!isNamed(thrown, 'NotReadableError') || failures === READ_RETRIES) throw thrown;
    }
  }
}

const READ_RETRIES = 20;
const REMOVE_RETRIES = 60;
