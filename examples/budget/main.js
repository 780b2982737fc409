// The same file in as much memory as you give it: less memory, the same text, fewer tokens a second.
import { inspect, open } from 'sluice-llm';

const element = (id) => document.getElementById(id);
const memory = () => `${element('memory').value}MB`;
let verdict;

element('file').onchange = async () => {
  verdict = await inspect(element('file').files[0], { context: 512 });
  await showPlan();
};
element('memory').oninput = async () => {
  element('megabytes').textContent = element('memory').value;
  if (verdict) await showPlan();
};

async function showPlan() {
  const { refused, residentShare, predicted } = await verdict.plan(memory());
  const speed = predicted ? `, about ${predicted.decodeTokensPerSecond.toFixed(1)} tokens/s` : '';
  element('plan').textContent = refused
    ? refused.message
    : `${Math.round(100 * residentShare)} % of the weights stay in memory${speed}`;
}

element('run').onclick = async () => {
  element('answer').textContent = '';
  const llm = await open(element('file').files[0], { context: 512, memory: memory() });
  // A picture of the ring fifteen times a second: what streams right now.
  const stop = llm.watch(({ tensor }) => {
    if (tensor !== null) element('figures').textContent = llm.layout.tensors[tensor].name;
  });
  for await (const { text } of llm.generate('The capital of France is', { maxTokens: 24, temperature: 0 }))
    element('answer').append(text);
  stop();
  const { decodeTokensPerSecond, memoryPeakBytes } = llm.stats;
  element('figures').textContent =
    `${decodeTokensPerSecond.toFixed(1)} tokens/s, ${(memoryPeakBytes / 1e6).toFixed(1)} MB at most`;
  await llm.close();
};
