// Python and the one package of its index that tests run on: wasmtime, into the clone's .tools/.
import path from 'node:path';
import { CommandError, probe, run } from '../command.mjs';
import { toolsDir } from '../repo.mjs';

const WASMTIME = '50.0.1';
// It is imported too: what is there has to work.
const VERSION_OF = 'import wasmtime, importlib.metadata; print(importlib.metadata.version(wasmtime.__name__))';
const packages = path.join(toolsDir, 'python');

/** Installs the engine that runs relaxed SIMD deterministically, unless it is there. */
export async function wasmtime() {
  const { python, env } = await wasmtimePython();
  const version = await probe(python, ['-c', VERSION_OF], { env });
  if (version?.trim() === WASMTIME) return `${WASMTIME} is there`;
  const options = ['--disable-pip-version-check', '--no-cache-dir', '--no-deps', '--only-binary=:all:', '--quiet', '--upgrade'];
  try {
    await run(python, ['-m', 'pip', 'install', ...options, '--target', packages, `wasmtime==${WASMTIME}`], { capture: true });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const message = `wasmtime ${WASMTIME} does not install: check that pip reaches its package index, then run this again`;
    throw Object.assign(new Error(message), { output: error.output });
  }
  return `${WASMTIME} installed`;
}

/** How to run Python with wasmtime: `run(python, ['script.py'], { env })`. */
export async function wasmtimePython() {
  return { python: await findPython(), env: { PYTHONPATH: packages } };
}

/** A Python with pip. */
export async function findPython() {
  for (const name of ['python3', 'python']) {
    if ((await probe(name, ['-m', 'pip', '--version'])) !== null) return name;
  }
  throw new Error(
    'Python with pip is missing, which the models and wasmtime come by: install it (Debian: `apt-get install python3-pip`), then run this again',
  );
}
