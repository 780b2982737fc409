// The folders of examples/, with the package, the models and the npm package they use.
import path from 'node:path';
import { modelsDir, pkgDir, root } from '../repo.mjs';
import { serve } from './server.mjs';

/** Serves them; resolves to `{ origin, close }`. */
export const serveExamples = (options = {}) =>
  serve({
    mounts: {
      '/pkg': pkgDir,
      '/models': modelsDir,
      '/node_modules/openai': path.join(root, 'node_modules/openai'),
      '/': path.join(root, 'examples'),
    },
    ...options,
  });
