// A bare page that has the package as `window.sluice` and nothing else: what browser-run and the browser tests work on.
import { appendFile } from 'node:fs/promises';
import path from 'node:path';
import express from 'express';
import { modulesDir, pkgDir } from '../repo.mjs';
import { serve } from './server.mjs';

const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>Sluice</title>
<link rel="icon" href="data:,">
<input type="file" multiple>
<script type="module">
  import * as sluice from '/pkg/index.js';
  window.sluice = sluice;
</script>
`;

/**
 * Serves the page at `/`, the package at `/pkg`, the modules it is made of at `/modules`, and files: `addFile(path)` gives the URL of one. What the page posts to
 * `/out` is appended to the file `out`. `routes(app)` adds handlers before these.
 */
export async function serveBarePage({ out, routes = () => {}, ...rest } = {}) {
  const files = [];
  const addRoutes = (app) => {
    routes(app);
    app.get('/', (request, response) => response.type('html').send(PAGE));
    app.get('/files/:index/:name', (request, response, next) => {
      const file = files[Number(request.params.index)];
      if (file === undefined) next();
      else response.sendFile(file, { dotfiles: 'allow' });
    });
    if (out !== undefined) {
      app.post('/out', express.raw({ type: () => true, limit: '1gb' }), async (request, response) => {
        await appendFile(out, request.body);
        response.end();
      });
    }
  };
  const server = await serve({ mounts: { '/pkg': pkgDir, '/modules': modulesDir }, routes: addRoutes, ...rest });
  return {
    ...server,
    addFile: (file) => `${server.origin}/files/${files.push(path.resolve(file)) - 1}/${encodeURIComponent(path.basename(file))}`,
  };
}
