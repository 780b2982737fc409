// Programs that we start: each leads a process group of its own, so that ending it ends its children and nobody else's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { withDeadline } from './deadline.mjs';

const running = new Set();

/** Starts a program; resolves when it runs. `stop()` ends its whole group and waits for it. */
export async function startOwned(command, args, { cwd, env = {}, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio, detached: true });
  await once(child, 'spawn');
  const ended = once(child, 'exit');
  running.add(child);
  ended.then(() => running.delete(child));
  return {
    child,
    ended,
    stop: async () => {
      signal(child, 'SIGTERM');
      try {
        await withDeadline(ended, 3000, command);
      } catch {
        signal(child, 'SIGKILL');
        await ended;
      }
      signal(child, 'SIGKILL'); // members of the group that outlived its leader
    },
  };
}

function signal(child, name) {
  try {
    process.kill(-child.pid, name);
  } catch {
    // The group is gone already.
  }
}

process.on('exit', () => {
  for (const child of running) signal(child, 'SIGKILL');
});
