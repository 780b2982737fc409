// The development packages of package-lock.json, installed again whenever that file has changed.
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../command.mjs';
import { root } from '../repo.mjs';

/** `npm ci` when node_modules is missing or was made from another lock file. */
export async function npmPackages() {
  if (await isCurrent()) return 'packages are there';
  const env = { PUPPETEER_SKIP_DOWNLOAD: '1' }; // the browsers are Debian's
  await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { capture: true, env });
  return 'packages installed';
}

// npm writes what it installed to node_modules/.package-lock.json as its last act: the same versions, without the root.
async function isCurrent() {
  try {
    const installed = JSON.parse(await readFile(path.join(root, 'node_modules/.package-lock.json'), 'utf8')).packages;
    const wanted = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8')).packages;
    for (const [name, { version, optional, integrity }] of Object.entries(wanted)) {
      if (name === '' || optional) continue;
      const { version: has, integrity: hash } = installed[name] ?? {};
      if (has !== version || hash !== integrity) return false;
    }
    return (await stat(path.join(root, 'node_modules'))).isDirectory();
  } catch {
    return false;
  }
}
