// What most specs begin with: a browser on a bare page that has the package.
import { launch } from '../../scripts/browsers/index.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';

/**
 * Starts the browser `name` on the page of `serving`, a server that may still be starting; resolves to `{ server, browser, page, close }` when
 * the page has the package. `close()` ends both, which is done here when that fails.
 */
export async function onBarePage(name, serving = serveBarePage(), options = {}) {
  const server = await serving;
  let browser;
  const close = async () => {
    await browser?.close();
    await server.close();
  };
  try {
    browser = await launch(name, options);
    const page = await browser.newPage();
    await page.goto(`${server.origin}/`);
    await page.waitFor(() => window.sluice !== undefined, [], 60_000);
    return { server, browser, page, close };
  } catch (error) {
    await close();
    throw error;
  }
}
