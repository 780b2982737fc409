/** What Node lacks of a worker's surroundings: `self`, and files. */

import { readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { platform } from '../worker/platform.js';
import { FileSource } from './file-source.js';

type Listener = (event: object) => void;

/** As much of a dedicated worker's scope as the worker's entry uses. */
const self = {
  postMessage: (message: unknown, transfer: Transferable[]) => parentPort?.postMessage(message, transfer as ArrayBuffer[]),
  addEventListener(type: 'message' | 'messageerror' | 'error' | 'unhandledrejection', listener: Listener): void {
    const preventDefault = (): void => undefined;
    if (type === 'message' || type === 'messageerror') parentPort?.on(type, (data: unknown) => listener({ data }));
    else if (type === 'error') process.on('uncaughtException', (error) => listener({ error, preventDefault }));
    else process.on('unhandledRejection', (reason) => listener({ reason, preventDefault }));
  },
  close: () => process.exit(0),
};
Object.assign(globalThis, { self });

/** Not by `new URL(…, import.meta.url)`: bundlers for servers would copy all that might be meant. */
const ownWasm = join(dirname(fileURLToPath(import.meta.url)), '../wasm');

platform.deviceBytes = totalmem();
platform.afterMessages = (resume) => setImmediate(resume);
platform.openFiles = (paths) => FileSource.open(paths);
platform.compiledWasm = async (build, folder) => {
  const file = join(folder === null ? ownWasm : fileURLToPath(folder), build, 'sluice_bg.wasm');
  return WebAssembly.compile(await readFile(file));
};
