/** The service worker: keeps the page's own files, so that a stored or picked model runs without a network. Models are none of its business. */

import { cleanupOutdatedCaches, matchPrecache, precacheAndRoute } from 'workbox-precaching';
import { NavigationRoute, registerRoute } from 'workbox-routing';
import { CacheFirst } from 'workbox-strategies';
import { newestPage } from './newest-page.js';

declare const self: ServiceWorkerGlobalScope & {
  /** What the build wrote, by webpack.config.js: every file with its version; `null` where the name says it. */
  readonly __FILES: readonly { readonly url: string; readonly revision: string | null }[];
};

const files = self.__FILES;
// Of the modules a browser takes one: it is kept when it is taken.
const isModule = (url: string): boolean => url.endsWith('.wasm');

cleanupOutdatedCaches();
registerRoute(
  new NavigationRoute(({ request }) =>
    newestPage(
      () => fetch(request),
      () => matchPrecache('index.html'),
      PATIENCE_MS,
    ),
  ),
);
precacheAndRoute(
  files.filter(({ url }) => !isModule(url)),
  { ignoreURLParametersMatching: [/./] },
);
registerRoute(
  ({ sameOrigin, url }) => sameOrigin && url.href.startsWith(self.registration.scope) && isModule(url.pathname),
  new CacheFirst({ cacheName: moduleCache() }),
);

self.addEventListener('activate', (event) => {
  event.waitUntil(Promise.all([self.clients.claim(), dropOldModules()]));
});

async function dropOldModules(): Promise<void> {
  const cache = await caches.open(moduleCache());
  const current = new Set(files.map(({ url }) => new URL(url, self.location.href).href));
  for (const request of await cache.keys()) {
    if (!current.has(request.url)) await cache.delete(request);
  }
}

/** Two pages of one origin, in two folders, have a cache each. */
function moduleCache(): string {
  return `sluice-modules-${self.registration.scope}`;
}

const PATIENCE_MS = 4000;
