// The three browsers of the tests, from Debian: Chromium, Firefox and WebKitGTK (under Xvfb, which has no headless mode).
import { findBrowsers } from '../browsers/programs.mjs';
import { aptInstall, canApt } from './apt.mjs';

const packages = { chromium: ['chromium'], firefox: ['firefox-esr'], webkit: ['webkit2gtk-driver', 'xvfb'] };

/** Installs those that are missing. */
export async function browsers() {
  const missing = Object.entries(await findBrowsers())
    .filter(([, found]) => found === null)
    .map(([name]) => name);
  if (missing.length === 0) return 'Chromium, Firefox and WebKitGTK are there';
  const wanted = missing.flatMap((name) => packages[name]);
  if (!canApt()) throw new Error(`${missing.join(', ')} missing: as root run \`apt-get install ${wanted.join(' ')}\``);
  await aptInstall(wanted);
  const still = Object.entries(await findBrowsers())
    .filter(([, found]) => found === null)
    .map(([name]) => name);
  if (still.length > 0)
    throw new Error(
      `${still.join(', ')} not found after installing ${wanted.join(', ')}: install a browser that the tests find (scripts/browsers/programs.mjs)`,
    );
  return `${wanted.join(', ')} installed`;
}
