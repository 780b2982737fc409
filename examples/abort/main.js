// An AbortSignal stops an answer at once; the engine answers the next question.
import { open } from 'sluice-llm';

const [stop, answer, status] = ['stop', 'answer', 'status'].map((id) => document.getElementById(id));
const controller = new AbortController();
stop.onclick = () => controller.abort();

const llm = await open('/models/smollm2-135m-q4_1.gguf');
try {
  for await (const { text } of llm.generate('Once upon a time', { maxTokens: 500, signal: controller.signal })) {
    answer.append(text);
  }
} catch (error) {
  if (!controller.signal.aborted) throw error;
}
let next = '';
for await (const { text } of llm.generate('The capital of France is', { maxTokens: 1, temperature: 0 })) next += text;
status.textContent = `Stopped. The capital of France is${next}.`;
await llm.close();
