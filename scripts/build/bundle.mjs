// The package's files, each of many modules: a page and its workers load a few files, and none of them waits for another to name it.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { build } from 'esbuild';
import { modulesDir, pkgDir } from '../repo.mjs';

/** What pages and programs import: these share what must exist once, such as the class of the errors. */
const SHARING = ['index.js', 'openai.js', 'node/index.js'];
/** What workers begin with: each has everything that it needs in itself. */
const WHOLE = ['worker/main.js', 'worker/helper.js', 'worker/download.js', 'node/worker.js'];

/** Bundles the modules into pkg/. */
export async function bundle() {
  // Chunks lie in pkg/ itself, as the modules in them do among the modules: the addresses of the workers count from there.
  await build({ ...options, entryPoints: SHARING, splitting: true, chunkNames: 'chunk-[hash]' });
  await build({ ...options, entryPoints: WHOLE });
}

/** The glue of a wasm module looks for it beside itself; seen from a worker's file it is in the folder `wasm`. */
const wasmBesideWorkers = {
  name: 'wasm-beside-workers',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]wasm[\\/][\w-]+[\\/]sluice\.js$/ }, async ({ path: file }) => {
      const name = path.basename(path.dirname(file));
      const text = await readFile(file, 'utf8');
      const contents = text.replace("new URL('sluice_bg.wasm',", `new URL('../wasm/${name}/sluice_bg.wasm',`);
      if (contents === text)
        throw new Error(`the glue of ${name} does not look for its module: has wasm-bindgen's text changed?`);
      return { contents: `${contents}\n//# sourceMappingURL=data:application/json,${JSON.stringify(GLUE_MAP)}\n` };
    });
  },
};

// Nobody reads the glue, which is generated: a map without its text spares the package a quarter of a megabyte.
const GLUE_MAP = { version: 3, sources: ['sluice.js'], sourcesContent: [''], names: [], mappings: 'AAAA' };

const options = {
  absWorkingDir: modulesDir,
  outbase: '.',
  outdir: pkgDir,
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  external: ['node:*'],
  target: 'es2022',
  minify: true,
  charset: 'utf8',
  sourcemap: true,
  // The manifest says of the files of pkg/ which ones do something by being imported, and nothing of the modules.
  ignoreAnnotations: true,
  plugins: [wasmBesideWorkers],
  logLevel: 'warning',
};
