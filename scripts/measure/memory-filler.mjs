// A machine with little memory left, where no control group can be had (Linux without swap): a process fills the rest with pages of its
// own, which the kernel cannot take back, before the measured program starts. What is left is for that program and the page cache. The
// filler is the first that the kernel would end.
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { startOwned } from '../browsers/owned-process.mjs';

const PIECE_BYTES = 64e6;

/**
 * Leaves `bytes` and resolves then: `{ usage, stop }`. `usage()` says what is available now, `{ leftBytes, kills }`, and how many programs
 * the kernel has ended since; `stop()` gives the memory back.
 */
export async function fillMemory(bytes) {
  if ((await fieldOf('/proc/meminfo', 'SwapTotal')) !== 0) throw new Error('--left: the kernel would swap the filling out');
  const args = ['--max-old-space-size=100', import.meta.filename, String(bytes)];
  const { child, ended, stop } = await startOwned(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await Promise.race([once(child.stdout, 'data'), ended]);
  if (child.exitCode !== null || child.signalCode !== null) throw new Error('--left: the filling program was ended');
  const before = await fieldOf('/proc/vmstat', 'oom_kill');
  return {
    usage: async () => ({ leftBytes: await available(), kills: (await fieldOf('/proc/vmstat', 'oom_kill')) - before }),
    stop,
  };
}

/** Kilobytes in one of these files are given as bytes. */
async function fieldOf(file, name) {
  const [, number, unit] = new RegExp(`^${name}:?\\s+(\\d+)( kB)?`, 'm').exec(await readFile(file, 'utf8')) ?? [];
  return Number(number) * (unit === undefined ? 1 : 1024);
}

/** What the kernel would give, page cache included. */
const available = () => fieldOf('/proc/meminfo', 'MemAvailable');

async function fill(bytes) {
  await writeFile('/proc/self/oom_score_adj', '1000');
  const pieces = [];
  while ((await available()) > bytes + PIECE_BYTES) pieces.push(Buffer.alloc(PIECE_BYTES, 1 + (pieces.length % 255)));
  console.log('full');
  setInterval(() => pieces.length, 1e6); // holds them until it is ended
}

if (import.meta.filename === process.argv[1]) await fill(Number(process.argv[2]));
