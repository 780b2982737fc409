// `npm run examples [-- --port N]`: sets up what is missing, builds the package, and serves the folders of examples/.
import { parseArgs } from 'node:util';
import { setup } from './setup/run.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8001' } } });

try {
  await setup(['npm', 'rust', 'wasm-bindgen', 'smollm2']);
  // Only now: these import npm packages.
  const { buildPackage } = await import('./build/run.mjs');
  const { serveExamples } = await import('./serve/examples.mjs');
  await buildPackage();
  const { origin } = await serveExamples({ port: Number(values.port) });
  console.log(`examples: open ${origin.replace('127.0.0.1', 'localhost')}/ (Ctrl+C ends it)`);
} catch (error) {
  console.error(`examples: ${error.message}`);
  process.exit(1);
}
