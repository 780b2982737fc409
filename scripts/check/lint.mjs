// Lints, every warning an error: clippy natively and for wasm32, the TypeScript compiler, ESLint.
import { cargoFor } from '../build/wasm.mjs';
import { bin } from '../repo.mjs';
import { runAsProgram, single, sum } from './tally.mjs';

// www/ sees the package as built: `npm run build` comes first.
const typescriptProjects = [
  'tsconfig.json',
  'js/worker/tsconfig.json',
  'js/node/tsconfig.json',
  'tests/js/tsconfig.json',
  'www/tsconfig.json',
  'www/offline/tsconfig.json',
];

// What else tests/ holds is native.
const wasmTests = ['kernels', 'wasm', 'tokenizer', 'opening'].flatMap((name) => ['--test', name]);

/** Runs all linters. */
export async function lint() {
  const counts = [await single('cargo', ['clippy', '--quiet', '--all-targets', '--', '-D', 'warnings'])];
  for (const name of ['simd', 'relaxed', 'relaxed-threads']) {
    const { cargo, args, env } = await cargoFor(name);
    counts.push(await single(cargo, ['clippy', '--quiet', '--lib', ...wasmTests, ...args, '--', '-D', 'warnings'], { env }));
  }
  for (const project of typescriptProjects) {
    counts.push(await single(process.execPath, [bin('typescript', 'bin/tsc'), '-p', project, '--noEmit']));
  }
  counts.push(await single(process.execPath, [bin('eslint', 'bin/eslint.js'), '--max-warnings=0', '.']));
  return sum(counts);
}

await runAsProgram(import.meta.filename, lint);
