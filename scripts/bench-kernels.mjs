// `npm run bench:kernels [-- --build native|scalar|simd|relaxed --browser chromium|firefox|webkit PART…]`: speed of the kernels
// (benches/kernels.rs). Without options natively, then SIMD128 and relaxed SIMD in Chromium. PART picks lines by name.
import { parseArgs } from 'node:util';
import { readFile } from 'node:fs/promises';
import { compileBench } from './bench/compiled.mjs';
import { withBrowser } from './browsers/index.mjs';
import { run } from './command.mjs';
import { serve } from './serve/server.mjs';

const { values, positionals: parts } = parseArgs({
  allowPositionals: true,
  options: { build: { type: 'string', multiple: true }, browser: { type: 'string', default: 'chromium' } },
});

for (const build of values.build ?? ['native', 'simd', 'relaxed']) {
  if (build === 'native') {
    console.log('native');
    await run('cargo', ['bench', '--quiet', '--bench', 'kernels', '--', ...parts]);
  } else {
    console.log(`${build} in ${values.browser}`);
    await runInBrowser(await compileBench('kernels', build));
  }
}

async function runInBrowser(file) {
  const wasm = await readFile(file);
  const routes = (app) => {
    app.get('/', (_, response) => response.type('html').send('<!doctype html><title>kernels</title>'));
    app.get('/kernels.wasm', (_, response) => response.type('application/wasm').send(wasm));
  };
  const server = await serve({ mounts: {}, routes });
  try {
    await withBrowser(values.browser, {}, async (browser) => {
      const page = await browser.newPage();
      await page.goto(server.origin);
      console.log((await page.evaluate(start, [parts], 600_000)).join('\n'));
    });
  } finally {
    await server.close();
  }
}

// In the page. The module's other imports belong to parts of the crate that do not run here.
async function start(parts) {
  const module = await WebAssembly.compile(await (await fetch('/kernels.wasm')).arrayBuffer());
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = () => {
      throw new Error(`${from}.${name} is not here`);
    };
  }
  const lines = [];
  const text = (at, bytes) => new TextDecoder().decode(new Uint8Array(memory.buffer, at, bytes));
  Object.assign((imports.bench ??= {}), {
    now: () => performance.now(),
    line: (at, bytes) => void lines.push(text(at, bytes)),
    wanted: (at, bytes) => Number(parts.length === 0 || parts.some((part) => text(at, bytes).includes(part))),
  });
  const { exports } = await WebAssembly.instantiate(module, imports);
  const memory = exports.memory;
  exports.main(0, 0);
  return lines;
}
