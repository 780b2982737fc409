// esbuild does not follow `new URL(…, import.meta.url)`: the package's files are copied beside the bundle, and `assets` names the worker.
import { cp } from 'node:fs/promises';
import { build } from 'esbuild';

await build({ entryPoints: ['main.js'], bundle: true, format: 'esm', minify: true, outdir: 'dist' });
await cp(new URL('pkg/', import.meta.resolve('sluice-llm/package.json')), 'dist/sluice', { recursive: true });
