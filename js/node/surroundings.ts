/** How the package runs in Node: the engine in a worker thread, sources that are paths or `file:` addresses. */

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { SluiceError } from '../errors.js';
import type { Surroundings } from '../launch.js';
import type { EnginePort } from '../workers.js';

/** Node. */
export const node: Surroundings = {
  startWorker: (url, onFault) => new ThreadPort(url ?? new URL('./worker.js', import.meta.url), onFault),

  localPath(file) {
    const text = String(file);
    if (text.startsWith('file:')) return fileURLToPath(text);
    if (file instanceof URL || text === '' || /^(https?|data|blob):/.test(text)) return undefined;
    return resolve(text);
  },
};

/** A worker thread that looks like a browser's worker. */
class ThreadPort implements EnginePort {
  readonly #worker: Worker;
  #over = false;

  constructor(url: URL, onFault: (said: string) => void) {
    // Not with the program's own flags: they may be for a program that is no file.
    this.#worker = new Worker(url, { name: 'sluice', execArgv: [] });
    const end = (said: string): void => {
      if (!this.#over) onFault(said);
      this.#over = true;
    };
    this.#worker.on('error', (error) => end(error.message));
    this.#worker.on('exit', (code) => end(`the worker thread ended with ${code}`));
  }

  postMessage(message: unknown, transfer: Transferable[]): void {
    try {
      this.#worker.postMessage(message, transfer as ArrayBuffer[]);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ERR_INVALID_STATE') throw thrown;
      const why = "a Blob of a file (fs.openAsBlob) cannot go to the thread that reads it: give the file's path instead";
      throw new SluiceError('invalid_option', why, { key: 'source' });
    }
  }

  addEventListener(type: 'message' | 'messageerror', listener: (event: MessageEvent) => void): void {
    this.#worker.on(type, (data: unknown) => listener({ data } as MessageEvent));
  }

  terminate(): Promise<unknown> {
    this.#over = true;
    return this.#worker.terminate();
  }
}
