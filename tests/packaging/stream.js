// What every consumer does with the package: streams an answer into the page; the title says how it ended.
export async function stream(open, options) {
  try {
    const llm = await open(new URL('/models/smollm2-135m-q4_1.gguf', location.href), options);
    for await (const { text } of llm.generate('The capital of France is', { maxTokens: 8, temperature: 0 })) {
      document.body.append(text);
    }
    await llm.close();
    document.body.dataset.build = llm.stats.build;
    document.title = 'done';
  } catch (error) {
    document.body.append(`${error.name} ${error.code}: ${error.message}`);
    document.title = 'failed';
  }
}
