// The package in Node: a file by its path.
import { open } from 'sluice-llm';

const llm = await open(process.argv[2], { memory: '64MB', context: 256 });
for await (const { text } of llm.generate('The capital of France is', { maxTokens: 8, temperature: 0 }))
  process.stdout.write(text);
await llm.close();
