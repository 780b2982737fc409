// The official SDK against a model in the page: its requests are answered by `fetch` of the adapter and never leave it.
import OpenAI from 'openai';
import { open } from 'sluice-llm';
import { openai } from 'sluice-llm/openai';

const llm = await open('/models/smollm2-135m-q4_1.gguf', { context: 1024 });
const { fetch } = openai(llm, { model: 'smollm2' });
const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch, dangerouslyAllowBrowser: true });

const stream = await client.chat.completions.create({
  model: 'smollm2',
  messages: [{ role: 'user', content: 'Name three colours.' }],
  stream: true,
});
for await (const chunk of stream) document.getElementById('answer').append(chunk.choices[0]?.delta.content ?? '');
await llm.close();
