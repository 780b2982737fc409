// The specs of a folder (*.spec.mjs) under `node --test`, one file at a time: there are two cores.
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../repo.mjs';
import { counted } from './tally.mjs';

/** Runs the specs whose names begin with one of `names`; without names all but those `onDemand`. */
export async function runSpecs(folder, names, onDemand = []) {
  const specs = (await readdir(path.join(root, folder))).filter((name) => name.endsWith('.spec.mjs'));
  const unknown = names.find((part) => !specs.some((name) => name.startsWith(part)));
  if (unknown !== undefined) throw new Error(`${folder} has no spec ${unknown}; there are ${specs.join(', ')}`);
  const chosen = (name) => (names.length === 0 ? !onDemand.includes(name) : names.some((part) => name.startsWith(part)));
  const files = specs.filter(chosen).map((name) => path.join(root, folder, name));
  return counted(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files]);
}
