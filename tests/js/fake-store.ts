/** An origin's private file system in memory, which fails on command, and the locks of a page: for tests of the store in Node. */

/** What the files of a fake store do wrong. */
export interface Faults {
  /** Bytes that all files together may take. */
  quotaBytes: number;
  /** What the browser says that is taken. */
  usedBytes: number;
  /** Reads give at most this. */
  mostRead: number;
}

/** What was done to a file through its handle: bytes `at` to `end` were written, all of them 0 if `zeros`; or what was written was flushed. */
export type Deed = { kind: 'write'; name: string; at: number; end: number; zeros: boolean } | { kind: 'flush'; name: string };

/** What all files of a fake store have in common. */
interface Disk {
  readonly faults: Faults;
  readonly journal: Deed[];
}

/** A folder with files. */
export class FakeFolder {
  readonly folders = new Map<string, FakeFolder>();
  readonly files = new Map<string, FakeFile>();
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  getDirectoryHandle(name: string, { create = false } = {}): Promise<FakeFolder> {
    const known = this.folders.get(name);
    if (known === undefined && !create) return Promise.reject(new DOMException(name, 'NotFoundError'));
    const folder = known ?? new FakeFolder(this.#disk);
    this.folders.set(name, folder);
    return Promise.resolve(folder);
  }

  getFileHandle(name: string, { create = false } = {}): Promise<FakeFile> {
    const known = this.files.get(name);
    if (known === undefined && !create) return Promise.reject(new DOMException(name, 'NotFoundError'));
    const file = known ?? new FakeFile(name, this.#disk);
    this.files.set(name, file);
    return Promise.resolve(file);
  }

  removeEntry(name: string): Promise<void> {
    const there = this.files.delete(name) || this.folders.delete(name);
    return there ? Promise.resolve() : Promise.reject(new DOMException(name, 'NotFoundError'));
  }

  async *keys(): AsyncGenerator<string> {
    await Promise.resolve();
    yield* [...this.folders.keys(), ...this.files.keys()];
  }
}

/** A file; its bytes are for tests to look at and to spoil. */
export class FakeFile {
  bytes = new Uint8Array(0);
  /** One has it for itself. */
  taken = false;
  /** So many blobs of it cannot be read, as if it were written after each. */
  stale = 0;
  readonly #name: string;
  readonly #disk: Disk;

  constructor(name: string, disk: Disk) {
    this.#name = name;
    this.#disk = disk;
  }

  getFile(): Promise<Blob> {
    return Promise.resolve(this.stale-- > 0 ? new StaleBlob([this.bytes]) : new Blob([this.bytes]));
  }

  createWritable(): Promise<unknown> {
    const parts: BlobPart[] = [];
    return Promise.resolve({
      write: (part: BlobPart) => {
        parts.push(part);
        const full = new Blob(parts).size > this.#disk.faults.quotaBytes;
        return full ? Promise.reject(new DOMException('full', 'QuotaExceededError')) : Promise.resolve();
      },
      abort: () => Promise.resolve(),
      close: async () => {
        await new Promise((resolve) => setTimeout(resolve, 5 * Math.random()));
        this.bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
      },
    });
  }

  createSyncAccessHandle(): Promise<unknown> {
    if (this.taken) return Promise.reject(new DOMException('taken', 'NoModificationAllowedError'));
    this.taken = true;
    return Promise.resolve({
      read: (place: Uint8Array, { at }: { at: number }) => {
        const some = this.bytes.subarray(at, at + Math.min(place.byteLength, this.#disk.faults.mostRead));
        place.set(some);
        return some.byteLength;
      },
      write: (bytes: Uint8Array, { at }: { at: number }) => {
        const end = at + bytes.byteLength;
        if (end > this.#disk.faults.quotaBytes) throw new DOMException('full', 'QuotaExceededError');
        if (end > this.bytes.byteLength) {
          const longer = new Uint8Array(end);
          longer.set(this.bytes);
          this.bytes = longer;
        }
        this.bytes.set(bytes, at);
        this.#disk.journal.push({ kind: 'write', name: this.#name, at, end, zeros: bytes.every((byte) => byte === 0) });
        return bytes.byteLength;
      },
      getSize: () => this.bytes.byteLength,
      flush: () => void this.#disk.journal.push({ kind: 'flush', name: this.#name }),
      close: () => void (this.taken = false),
    });
  }
}

/** A file's blob, and the file was written since. */
class StaleBlob extends Blob {
  override slice(start?: number, end?: number): Blob {
    return Object.assign(super.slice(start, end), {
      stream: () => new ReadableStream({ pull: () => Promise.reject(new DOMException('written', 'NotReadableError')) }),
    });
  }
}

/** From now on the globals lead to this store. `journal` is what is done to all its files, in order. */
export function useFakeStore(): { root: FakeFolder; faults: Faults; journal: Deed[] } {
  const faults = { quotaBytes: Infinity, usedBytes: 0, mostRead: Infinity };
  const journal: Deed[] = [];
  const root = new FakeFolder({ faults, journal });
  const navigator = {
    storage: {
      getDirectory: () => Promise.resolve(root),
      estimate: () => Promise.resolve({ usage: faults.usedBytes, quota: 1e9 }),
      persisted: () => Promise.resolve(false),
    },
    locks: new FakeLocks(),
  };
  Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
  return { root, faults, journal };
}

interface LockOptions {
  mode?: 'exclusive' | 'shared';
  ifAvailable?: boolean;
  signal?: AbortSignal;
}

/** Web Locks, as far as the store uses them. */
class FakeLocks {
  readonly #held = new Map<string, { shared: boolean; count: number }>();

  async request<T>(name: string, options: LockOptions, work: (lock: object | null) => Promise<T>): Promise<T> {
    const shared = options.mode === 'shared';
    const isFree = (): boolean => {
      const held = this.#held.get(name);
      return held === undefined || (shared && held.shared);
    };
    while (!isFree()) {
      if (options.ifAvailable === true) return work(null);
      if (options.signal?.aborted === true) throw options.signal.reason;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    this.#held.set(name, { shared, count: (this.#held.get(name)?.count ?? 0) + 1 });
    try {
      return await work({});
    } finally {
      const held = this.#held.get(name);
      if (held !== undefined && (held.count -= 1) === 0) this.#held.delete(name);
    }
  }
}
