// What a browser takes of the machine: the proportional set size (PSS) of its whole process tree, from /proc (Linux).
import { readFile, readdir } from 'node:fs/promises';
import { sleep } from '../browsers/deadline.mjs';

const SAMPLE_MS = 100;

/** The process and all its descendants, as they are now. */
export async function processTree(root) {
  const children = new Map();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    // After the name of the program, which may hold anything: state, parent…
    const stat = (await textOf(`/proc/${name}/stat`)).split(') ').pop();
    const parent = Number(stat.split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** PSS of the tree in bytes, and `anonymous`, the part of it that no file backs. */
export async function treePss(root) {
  const sum = { total: 0, anonymous: 0 };
  for (const pid of await processTree(root)) {
    const text = await textOf(`/proc/${pid}/smaps_rollup`);
    const kibibytes = (key) => Number(text.match(new RegExp(`^${key}: +(\\d+) kB`, 'm'))?.[1] ?? 0);
    sum.total += kibibytes('Pss') * 1024;
    sum.anonymous += kibibytes('Pss_Anon') * 1024;
  }
  return sum;
}

/** Bytes that the tree's living processes have had read from disk. */
export async function treeDiskBytes(root) {
  let bytes = 0;
  for (const pid of await processTree(root)) {
    bytes += Number((await textOf(`/proc/${pid}/io`)).match(/^read_bytes: (\d+)/m)?.[1] ?? 0);
  }
  return bytes;
}

/** Samples the tree until `stop()`, which resolves to the samples `{ ms, total, anonymous }` in order. */
export function samplePss(root) {
  const samples = [];
  const started = performance.now();
  let on = true;
  const loop = async () => {
    while (on) {
      const ms = performance.now() - started;
      samples.push({ ms, ...(await treePss(root)) });
      await sleep(Math.max(0, SAMPLE_MS - (performance.now() - started - ms)));
    }
  };
  const done = loop();
  return {
    stop: async () => {
      on = false;
      await done;
      return samples;
    },
  };
}

/** The middle value. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

// A process may end between listing and reading: it counts nothing then.
const textOf = (file) => readFile(file, 'utf8').catch(() => '');
