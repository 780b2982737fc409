// Opens a model behind an address and streams an answer into the page.
import { open } from 'sluice-llm';

const [answer, figures] = ['answer', 'figures'].map((id) => document.getElementById(id));

const llm = await open('/models/smollm2-135m-q4_1.gguf', {
  onProgress: ({ loadedBytes, totalBytes }) => (figures.textContent = `${Math.round((100 * loadedBytes) / totalBytes)} % loaded`),
});
for await (const chunk of llm.generate('The capital of France is', { maxTokens: 24, temperature: 0 })) {
  answer.append(chunk.text);
}
const { decodeTokensPerSecond, memoryBytes } = llm.stats;
await llm.close(); // what is still being stored would be told of until then
figures.textContent = `${decodeTokensPerSecond.toFixed(1)} tokens/s in ${(memoryBytes / 1e6).toFixed(0)} MB`;
