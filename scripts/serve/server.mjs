// The development server: static files with Range support (Express and its `send`), on a page that is cross-origin isolated.
import { once } from 'node:events';
import { createServer } from 'node:http';
import express from 'express';

/**
 * Serves `mounts` (URL prefix → directory) on the loopback interface; resolves to `{ origin, app, close }`.
 * `isolated` sends the COOP/COEP headers that SharedArrayBuffer needs. `routes(app)` adds handlers that come before the files.
 */
export async function serve({ mounts, port = 0, isolated = true, routes = () => {} }) {
  const app = express();
  app.disable('x-powered-by');
  app.use((request, response, next) => {
    if (isolated) {
      response.set('Cross-Origin-Opener-Policy', 'same-origin');
      response.set('Cross-Origin-Embedder-Policy', 'require-corp');
      response.set('Cross-Origin-Resource-Policy', 'same-origin');
    }
    next();
  });
  routes(app);
  for (const [prefix, directory] of Object.entries(mounts)) {
    app.use(prefix, express.static(directory, { cacheControl: false, dotfiles: 'ignore', setHeaders: noStore }));
  }
  app.use(refuse);
  const server = createServer(app);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    app,
    origin: `http://127.0.0.1:${server.address().port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

// A request that cannot be answered is the asker's business: a status, and nothing on the terminal.
function refuse(error, request, response, next) {
  if (response.headersSent) return next(error);
  response
    .status(error.status ?? 500)
    .set(error.headers ?? {})
    .type('text')
    .send(error.message);
}

// A rebuilt page must never be mixed with a cached older one.
const noStore = (response) => response.set('Cache-Control', 'no-cache');
