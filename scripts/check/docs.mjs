// The pages: what is generated is current, and no link between them is broken.
import { access, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { apiFile, apiText } from '../docs/api.mjs';
import { root } from '../repo.mjs';
import { runAsProgram } from './tally.mjs';

/** Checks docs/api.md and the links of all pages. */
export async function docs() {
  const problems = await brokenLinks();
  if ((await apiText()) !== (await readFile(apiFile, 'utf8').catch(() => ''))) {
    problems.push('docs/api.md is not what the types say: run `npm run docs`');
  }
  for (const problem of problems) console.error(problem);
  return problems.length === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: problems.length };
}

async function brokenLinks() {
  const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples/README.md'];
  for (const name of await readdir(path.join(root, 'docs'))) if (name.endsWith('.md')) pages.push(`docs/${name}`);
  const problems = [];
  for (const page of pages) {
    const text = await readFile(path.join(root, page), 'utf8');
    for (const [, target] of text.matchAll(/\]\((?!https?:)([^)#\s]+)/g)) {
      const file = path.join(root, path.dirname(page), target);
      await access(file).catch(() => problems.push(`${page}: there is no ${target}`));
    }
  }
  return problems;
}

await runAsProgram(import.meta.filename, docs);
