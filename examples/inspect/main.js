// What a model would take, from its header alone: a few megabytes of a file that may have gigabytes.
import { inspect } from 'sluice-llm';

const verdict = await inspect('/models/smollm2-135m-q4_1.gguf', { context: 2048 });
const { name, architecture, fileBytes } = verdict.model;
row('Model', `${name} (${architecture}), ${(fileBytes / 1e6).toFixed(0)} MB`);
for (const memory of ['50MB', '150MB', '300MB']) {
  const { refused, plan, predicted } = await verdict.plan(memory);
  const speed = predicted ? `, about ${predicted.decodeTokensPerSecond.toFixed(0)} tokens/s` : '';
  row(memory, refused ? refused.message : `takes ${(plan.totalBytes / 1e6).toFixed(0)} MB${speed}`);
}
verdict.close();

function row(...cells) {
  const line = document.getElementById('table').insertRow();
  for (const cell of cells) line.insertCell().textContent = cell;
}
