// The models and golden data of the specs, and the native command they are compared with.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { modelsDir, root } from '../../scripts/repo.mjs';

export { sluice } from '../../scripts/native-command.mjs';

/** SmolLM2 135M Instruct, Q4_1: fetched by the set-up. */
export const smollm2 = path.join(modelsDir, 'smollm2-135m-q4_1.gguf');

/** Gemma 3 270M Instruct, Q4_K_M: fetched by the set-up. */
export const gemma3 = path.join(modelsDir, 'gemma3-270m-q4_k_m.gguf');

/** A file of tests/fixtures. */
export const fixture = (...parts) => path.join(root, 'tests/fixtures', ...parts);

/** The oracle's cases of a real model, by name. */
export async function golden(model, ...names) {
  const { prompts } = JSON.parse(await readFile(fixture('real', `${model}.json`), 'utf8'));
  return names.map((name) => prompts.find((prompt) => prompt.name === name));
}
