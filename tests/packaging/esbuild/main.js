// The page that esbuild bundles; the worker and the wasm modules are files that it does not touch.
import { open } from 'sluice-llm';
import { stream } from './stream.js';

stream(open, { assets: { worker: new URL('./sluice/worker/main.js', import.meta.url) } });
