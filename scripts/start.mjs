// `npm start [-- --port N]`: sets up what is missing, builds the package and the demo, and serves them with the models.
import { parseArgs } from 'node:util';
import { setup } from './setup/run.mjs';
import { modelsDir, pkgDir, siteDir } from './repo.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8000' } } });

try {
  await setup(['npm', 'rust', 'wasm-bindgen', 'smollm2']);
  // Only now: these import npm packages.
  const { buildPackage } = await import('./build/run.mjs');
  const { buildSite } = await import('./build/site.mjs');
  const { serve } = await import('./serve/server.mjs');
  await buildPackage();
  await buildSite();
  const { origin } = await serve({ mounts: { '/': siteDir, '/models': modelsDir, '/pkg': pkgDir }, port: Number(values.port) });
  console.log(`start: open ${origin.replace('127.0.0.1', 'localhost')}/ (Ctrl+C ends it)`);
} catch (error) {
  console.error(
    error.code === 'EADDRINUSE'
      ? `start: port ${values.port} is taken: choose one with \`npm start -- --port N\``
      : `start: ${error.message}`,
  );
  process.exit(1);
}
