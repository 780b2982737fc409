// `npm run setup [-- STEP…]`: installs what is missing. Plain Node, no dependencies: it runs before there are any.
// A step says one line: what it did, or that the thing is there. A step that cannot work says what is missing and what to do.
import { browsers } from './browsers.mjs';
import { gemma3, smollm2 } from './models.mjs';
import { npmPackages } from './npm.mjs';
import { wasmtime } from './python.mjs';
import { rust } from './rust.mjs';
import { wasmBindgen } from './wasm-bindgen.mjs';

/** Name → step. A step resolves to what it has to say and throws an `Error` with the remedy. */
export const steps = { npm: npmPackages, rust, 'wasm-bindgen': wasmBindgen, wasmtime, browsers, smollm2, gemma3 };

/** Runs the named steps in order; the first that cannot work ends it. */
export async function setup(names = Object.keys(steps)) {
  for (const name of names) {
    const started = performance.now();
    try {
      const said = await steps[name]();
      const seconds = (performance.now() - started) / 1000;
      console.log(`setup: ${name}: ${said}${seconds >= 1 ? ` (${seconds.toFixed(0)} s)` : ''}`);
    } catch (error) {
      const output = error.output ? `\n${error.output.trimEnd().split('\n').slice(-15).join('\n')}` : '';
      throw new Error(`${name}: ${error.message}${output}`, { cause: error });
    }
  }
}

if (import.meta.filename === process.argv[1]) {
  const names = process.argv.slice(2);
  const unknown = names.find((name) => !(name in steps));
  if (unknown) {
    console.error(`setup: there is no step ${unknown}: ${Object.keys(steps).join(', ')}`);
    process.exit(2);
  }
  await setup(names.length > 0 ? names : undefined).catch((error) => {
    console.error(`setup: ${error.message}`);
    process.exit(1);
  });
}
