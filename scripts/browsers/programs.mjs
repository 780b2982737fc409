// Where the browsers' programs are. Plain Node: the set-up uses it before any package is installed.
import { access, readdir } from 'node:fs/promises';
import path from 'node:path';

const exists = (file) =>
  access(file).then(
    () => true,
    () => false,
  );

/** Browser → the programs it needs, or `null` when one of them is missing. */
export async function findBrowsers() {
  const chromium = await inPath('chromium', 'chromium-browser', 'google-chrome-stable');
  const firefox = await inPath('firefox-esr', 'firefox');
  const driver = await inPath('WebKitWebDriver');
  const xvfb = await inPath('Xvfb');
  const miniBrowser = await findMiniBrowser();
  return {
    chromium: chromium && { browser: chromium },
    firefox: firefox && { browser: firefox },
    webkit: driver && xvfb && miniBrowser && { browser: miniBrowser, driver, xvfb },
  };
}

async function inPath(...names) {
  for (const name of names) {
    for (const directory of (process.env['PATH'] ?? '').split(path.delimiter)) {
      const file = path.join(directory, name);
      if (directory !== '' && (await exists(file))) return file;
    }
  }
  return null;
}

// Debian keeps MiniBrowser out of PATH, in the library's own folder: /usr/lib/ARCH/webkit2gtk-VERSION/.
async function findMiniBrowser() {
  for (const arch of await readdir('/usr/lib').catch(() => [])) {
    if (!arch.includes('-linux-gnu')) continue;
    const folders = await readdir(path.join('/usr/lib', arch)).catch(() => []);
    for (const folder of folders
      .filter((name) => name.startsWith('webkit'))
      .sort()
      .reverse()) {
      const file = path.join('/usr/lib', arch, folder, 'MiniBrowser');
      if (await exists(file)) return file;
    }
  }
  return null;
}
