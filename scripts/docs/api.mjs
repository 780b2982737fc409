// docs/api.md, generated from the package's types and their comments.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from '../command.mjs';
import { bin, root } from '../repo.mjs';

/** Where it is kept. */
export const apiFile = path.join(root, 'docs/api.md');

/** Its text as the types are now. */
export async function apiText() {
  const folder = await mkdtemp(path.join(tmpdir(), 'sluice-api-'));
  try {
    await run(process.execPath, [bin('typedoc', 'bin/typedoc'), '--out', folder, '--logLevel', 'Warn'], { capture: true });
    const [main, openai] = await Promise.all(['index.md', 'openai.md'].map((name) => readFile(path.join(folder, name), 'utf8')));
    return main.replace('# index\n', HEAD) + openai.replace('# openai\n', '\n# sluice-llm/openai\n');
  } finally {
    await rm(folder, { recursive: true });
  }
}

const HEAD = `# API

Generated from the types by \`npm run docs\`. What \`sluice-llm\` exports comes first, then [\`sluice-llm/openai\`](#sluice-llmopenai).
`;
