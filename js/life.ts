/**
 * How the page learns that a worker has gone without a word: a worker holds a lock for as long as it lives. Where there are no locks
 * (a page that is no secure context), only a worker that says something is noticed.
 */

/** In the worker: holds a lock from now on, and gives its name to `held` when it has it. */
export function holdLife(held: (lock: string) => void): void {
  if (locks() === undefined) return;
  const lock = `sluice ${crypto.randomUUID()}`;
  const forEver = new Promise<void>(() => undefined);
  const hold = (): Promise<void> => {
    held(lock);
    return forEver;
  };
  locks()
    ?.request(lock, hold)
    .catch(() => undefined);
}

/** On the page: resolves when whoever holds `lock` has ended. */
export async function whenGone(lock: string): Promise<void> {
  await locks()?.request(lock, () => undefined);
}

function locks(): LockManager | undefined {
  return globalThis.navigator?.locks;
}
