// The table of docs/models.md: what real models take, as `sluice inspect` says of headers of their shapes.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { sluice } from '../native-command.mjs';
import { root } from '../repo.mjs';

/** Where it is kept. */
export const modelsFile = path.join(root, 'docs/models.md');

// `make-model`'s name → format, and the name that readers know.
const shapes = [
  ['smollm2-135m', 'q4_1', 'SmolLM2 135M, Q4_1'],
  ['gemma3-270m', 'q4_k_m', 'Gemma 3 270M, Q4_K_M'],
  ['llama-1b', 'q4_k_m', 'Llama 3.2 1B, Q4_K_M'],
  ['llama-8b', 'q4_k_m', 'Llama 3.1 8B, Q4_K_M'],
  ['llama-13b', 'q4_k_m', 'Llama 2 13B, Q4_K_M'],
  ['llama-70b', 'q4_k_m', 'Llama 3.1 70B, Q4_K_M'],
];
const budgets = ['64MB', '256MB', '512MB', '1GB', '2GB', '4GB'];

/** The page with its table as the planner fills it now. */
export async function modelsText() {
  const folder = await mkdtemp(path.join(tmpdir(), 'sluice-models-'));
  const rows = [];
  try {
    for (const [shape, quant, name] of shapes) {
      const file = path.join(folder, `${shape}.gguf`);
      await sluice('make-model', shape, '--quant', quant, '--out', file, '--zeros', '--quiet');
      const verdicts = [];
      for (const budget of budgets) {
        verdicts.push(JSON.parse(await sluice('inspect', file, '--ctx', '1024', '--ram-budget', budget, '--json')));
      }
      const [{ fileBytes, floorBytes }] = verdicts;
      rows.push([
        name,
        megabytes(fileBytes),
        megabytes(floorBytes),
        ...verdicts.map(({ residentShare: share }) => percent(share)),
      ]);
      await rm(file);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
  const head = ['model', 'file', 'needs', ...budgets];
  const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const page = await readFile(modelsFile, 'utf8');
  return page.replace(/(<!-- table.*-->\n)[^]*(<!-- end -->)/, (_, start, end) => `${start}${table}\n${end}`);
}

const megabytes = (bytes) => `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`;
const percent = (share) => (share === null ? '–' : `${Math.floor(100 * share)} %`);
