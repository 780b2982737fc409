// Debian packages, when we are root and apt is there.
import { accessSync } from 'node:fs';
import { run } from '../command.mjs';

/** May we install Debian packages? */
export function canApt() {
  try {
    accessSync('/usr/bin/apt-get');
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

/** Installs packages without asking and without what they merely recommend. */
export async function aptInstall(packages) {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const options = ['-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3'];
  await run('apt-get', [...options, 'update'], { capture: true, env });
  await run('apt-get', [...options, 'install', '-y', '--no-install-recommends', ...packages], { capture: true, env });
}
