/** The page that a worker asks for others, for tests in Node: it starts none, and gives the test their ends of the channels. */

import type { ToPage, Welcome } from '../../js/protocol.js';

/** What was asked of the page. */
export interface FakePage {
  /** A channel to who asked, for each worker that was wanted. */
  readonly hired: MessagePort[];
  /** Numbers of those that are not wanted any more. */
  readonly dismissed: number[];
}

/** Modules that are imported from now on are a worker's. */
export function beWorker(): void {
  Object.assign(globalThis, { self: new EventTarget() });
}

/** The worker has a page; `js/worker/hired.ts` is imported already. */
export function useFakePage(): FakePage {
  const page: FakePage = { hired: [], dismissed: [] };
  const port = {
    postMessage(asked: ToPage) {
      if (asked.kind === 'hire') page.hired.push(asked.employer);
      else page.dismissed.push(asked.n);
    },
  };
  const welcome = { kind: 'welcome', page: port as unknown as MessagePort, employer: null } satisfies Welcome;
  self.dispatchEvent(new MessageEvent('message', { data: welcome }));
  return page;
}

/** Resolves when something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
