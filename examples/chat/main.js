// A conversation: each answer streams in, and the next turn computes only what is new.
import { open } from 'sluice-llm';

const llm = await open('/models/smollm2-135m-q4_1.gguf', { context: 2048 });
const messages = [{ role: 'system', content: 'You are a helpful assistant. Answer briefly.' }];

document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const input = document.querySelector('#text');
  messages.push({ role: 'user', content: input.value });
  line(`You: ${input.value}`);
  input.value = '';
  const out = line('');
  for await (const chunk of llm.chat(messages, { maxTokens: 256, contextShift: true })) out.textContent += chunk.text;
  messages.push({ role: 'assistant', content: out.textContent });
  out.title = `${llm.stats.reusedTokens} of ${llm.stats.promptTokens} tokens were still there`;
});

document.body.dataset.ready = 'true';

function line(text) {
  const item = document.querySelector('#log').appendChild(document.createElement('li'));
  item.textContent = text;
  return item;
}
