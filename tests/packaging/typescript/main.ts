// What a typed user writes; it is compiled and not run.
import { type Chunk, type ErrorCode, type Snapshot, SluiceError, capabilities, inspect, models, open } from 'sluice-llm';
import { openai } from 'sluice-llm/openai';

export async function everything(file: File, handle: FileSystemFileHandle, signal: AbortSignal): Promise<string> {
  const reasons: readonly string[] = capabilities().reasons;
  const verdict = await inspect(new URL('https://host.example/m.gguf'), { memory: '300MB', signal });
  const smaller: number | null = (await verdict.plan('100MB')).floorBytes;
  verdict.close();
  const opening = open([file], { memory: 300e6, context: 2048, kvType: 'q8_0', onProgress: ({ stage }) => console.log(stage) });
  const llm = await opening;
  let last: Chunk | undefined;
  for await (const chunk of llm.generate('Once', { maxTokens: 3, stop: ['.'], logprobs: 1, signal })) last = chunk;
  const reason: 'stop' | 'length' | null | undefined = last?.finishReason;
  const counted: number | undefined = last?.usage?.generatedTokens;
  for await (const { text } of llm.chat([{ role: 'user', content: 'Hi' }], { contextShift: true })) console.log(text);
  const ids: number[] = await llm.tokenize('x');
  const [vector]: Float32Array[] = (await llm.embed(['x'], { pooling: 'mean' })).vectors;
  const stop: () => void = llm.watch((snapshot: Snapshot) => console.log(snapshot), { framesPerSecond: 5 });
  stop();
  const api = openai(llm);
  const answer = await api.chat.completions.create({ model: 'm', messages: [], max_tokens: 2 });
  const content: string | undefined = answer.choices[0]?.message.content;
  for (const { id, complete } of await models.list()) if (!complete) await models.remove(id);
  await llm.close();
  await open(handle)
    .close()
    .catch((error: unknown) => {
      const code: ErrorCode | undefined = error instanceof SluiceError ? error.code : undefined;
      console.log(code);
    });
  // @ts-expect-error there is no such option
  open(file, { memoryy: 1 }).catch(() => undefined);
  return JSON.stringify([reasons, smaller, reason, counted, ids, vector, content, llm.stats.memoryBytes]);
}
