// `npm run build [-- --build NAME]…`: the package into pkg/ — wasm modules, then the TypeScript half.
import { parseArgs } from 'node:util';
import { builds, published } from './builds.mjs';
import { buildJs } from './js.mjs';
import { buildWasm, standIn } from './wasm.mjs';

/** Builds the package; `names` are the wasm modules to make, by default all that are published. */
export async function buildPackage(names = published) {
  for (const name of names) await buildWasm(name);
  await standIn(names);
  await buildJs();
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: { build: { type: 'string', multiple: true } } });
  const unknown = values.build?.find((name) => !(name in builds));
  if (unknown) {
    console.error(`build: there is no build ${unknown}: ${Object.keys(builds).join(', ')}`);
    process.exit(2);
  }
  try {
    await buildPackage(values.build);
  } catch (error) {
    console.error(`build: ${error.message}`);
    process.exit(1);
  }
}
