/** Who may do what with a model in the store, across tabs (Web Locks): one writes, any number read, and nobody removes what is in use. */

/** The name of the lock that whoever downloads a model holds, and of the channel on which tabs tell each other of it. */
export function lockName(id: string): string {
  return `sluice:${id}`;
}

/** Keeps a model from being removed until what it resolves to is called, or this page or worker ends. */
export function holdForUse(id: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(useName(id), { mode: 'shared' }, () => new Promise<void>((release) => resolve(release)));
    held.catch(reject);
  });
}

/** Does `work` while nobody uses the model; `undefined` when somebody still does after `waitMs`. */
export async function whileUnused<T>(id: string, waitMs: number, work: () => Promise<T>): Promise<{ done: T } | undefined> {
  const patience = AbortSignal.timeout(waitMs);
  try {
    return await navigator.locks.request(useName(id), { signal: patience }, async () => ({ done: await work() }));
  } catch (thrown) {
    if (patience.aborted && thrown === patience.reason) return undefined;
    throw thrown;
  }
}

function useName(id: string): string {
  return `${lockName(id)}:use`;
}
