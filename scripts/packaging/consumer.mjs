// A project that uses the package as npm delivers it: the tarball of `npm pack`, installed beside a copy of tests/packaging/NAME.
import { existsSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import webpack from 'webpack';
import { run } from '../command.mjs';
import { bin, root } from '../repo.mjs';

/** Consumers live here, so that they find the repository's bundlers and nothing else of it. */
const folder = path.join(root, 'target/packaging');
const sources = path.join(root, 'tests/packaging');

/** Packs the package once; resolves to `{ file, size, entryCount, files: [{ path }] }`, with the absolute `file`. */
export function pack() {
  return (packed ??= packNow());
}
let packed;

async function packNow() {
  await mkdir(folder, { recursive: true });
  const [found] = JSON.parse(await run('npm', ['pack', '--json', '--pack-destination', folder], { capture: true }));
  return { ...found, file: path.join(folder, found.filename) };
}

/** Makes the consumer NAME afresh with the packed tarball installed; resolves to its folder. */
export async function consumer(name) {
  const { file } = await pack();
  const home = path.join(folder, name);
  await rm(home, { recursive: true, force: true });
  await cp(path.join(sources, name), home, { recursive: true });
  await cp(path.join(sources, 'stream.js'), path.join(home, 'stream.js'));
  // A project of its own: within the repository's, the package's name would mean the repository.
  if (!existsSync(path.join(home, 'package.json'))) await writeFile(path.join(home, 'package.json'), '{ "type": "module" }\n');
  if (existsSync(path.join(home, 'package-lock.json')))
    await run('npm', ['ci', '--no-audit', '--no-fund'], { capture: true, cwd: home });
  const installed = path.join(home, 'node_modules/sluice-llm');
  await mkdir(installed, { recursive: true });
  // What npm does with a tarball that depends on nothing.
  await run('tar', ['-xzf', file, '--strip-components=1', '-C', installed]);
  return home;
}

/** Name → how its user builds it, in the consumer's folder. */
export const builders = {
  none: () => undefined,
  webpack: bundleWithWebpack,
  vite: (cwd) => run(process.execPath, [bin('vite', 'bin/vite.js'), 'build'], { capture: true, cwd }),
  esbuild: (cwd) => run(process.execPath, ['build.mjs'], { capture: true, cwd }),
};

/** As `npx webpack` does, whose command is a package of its own; warnings count. */
async function bundleWithWebpack(context) {
  const { default: config } = await import(pathToFileURL(path.join(context, 'webpack.config.js')).href);
  const compiler = webpack({ ...config, context, output: { ...config.output, path: path.join(context, 'dist') } });
  const stats = await promisify(compiler.run.bind(compiler))();
  await promisify(compiler.close.bind(compiler))();
  if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString('errors-warnings'));
}
