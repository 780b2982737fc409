/** The page's half of working offline: starts the service worker, and says whether everything that a run takes is kept. */

/** Starts it, where the browser has service workers, and says what came of it; resolves when the page's workers are served by it, or never will be. */
export async function startOffline(say: (text: string) => void): Promise<void> {
  // A page that is not served securely has none, and neither has a private window of some browsers.
  if (!('serviceWorker' in navigator))
    return say('This browser or this address allows no service worker: the page itself needs the network.');
  try {
    await navigator.serviceWorker.register(new URL('sw.js', document.baseURI), { updateViaCache: 'none' });
    await controlled();
    say('Works offline: the page is kept in this browser. A stored or picked model then needs no network at all.');
  } catch {
    say('The browser did not allow to keep the page: it needs the network.');
  }
}

/** Resolves when what the page and workers of it fetch from now on goes through the service worker. */
async function controlled(): Promise<void> {
  const { serviceWorker } = navigator;
  if (serviceWorker.controller !== null) return;
  await new Promise<void>((resolve) => serviceWorker.addEventListener('controllerchange', () => resolve(), { once: true }));
}
