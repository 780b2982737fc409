// `npm run docs`: writes the pages that are generated, docs/api.md and the tables of docs/models.md.
import { writeFile } from 'node:fs/promises';
import { apiFile, apiText } from './docs/api.mjs';
import { modelsFile, modelsText } from './docs/models.mjs';

await writeFile(apiFile, await apiText());
await writeFile(modelsFile, await modelsText());
