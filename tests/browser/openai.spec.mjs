// The official `openai` package against a model in the page: it streams a chat, and embeddings rank what is near above what is far.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import express from 'express';
import { root } from '../../scripts/repo.mjs';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { onBarePage } from './bare.mjs';
import { smollm2 } from './models.mjs';

const DEADLINE_MS = 120_000;

describe('the official SDK in Chromium', { timeout: 3 * DEADLINE_MS }, () => {
  let server, page, close, url;
  before(async () => {
    const sdk = express.static(path.join(root, 'node_modules/openai'));
    ({ server, page, close } = await onBarePage('chromium', serveBarePage({ routes: (app) => app.use('/openai', sdk) })));
    url = server.addFile(smollm2);
  });
  after(() => close?.());

  it('streams a chat that ends as asked, and gives the same whole', async () => {
    const { pieces, reason, usage, whole, direct, refused, scored } = await page.evaluate(chatInPage, [url], DEADLINE_MS);
    assert.ok(pieces.length > 3, `${pieces.length} pieces`);
    assert.equal(reason, 'length');
    assert.equal(usage.completion_tokens, 12);
    assert.equal(pieces.join(''), whole);
    assert.equal(whole, direct);
    assert.deepEqual([refused.status, refused.param, refused.message.includes("'top_p'")], [400, 'top_p', true]);
    const { text, logprobs } = scored.choices[0];
    assert.equal(logprobs.tokens.join(''), text);
    const ends = logprobs.text_offset.map((from, i) => text.slice(from, logprobs.text_offset[i + 1]));
    assert.deepEqual(ends, logprobs.tokens, 'the answer is in plain ASCII');
    // Greedy: what was taken is the likeliest.
    assert.deepEqual(
      logprobs.top_logprobs.map((top) => Math.max(...Object.values(top))),
      logprobs.token_logprobs,
    );
  });

  it('takes a silent tool call, and a stream that nobody reads holds nobody up', async () => {
    const { silent, behind } = await page.evaluate(toolsInPage, [url], DEADLINE_MS);
    assert.ok(silent.usage.prompt_tokens > 10 && silent.usage.completion_tokens === 2, JSON.stringify(silent.usage));
    assert.equal(behind.usage.completion_tokens, 2);
  });

  it('ranks near sentences above far ones', async () => {
    const { near, far, length } = await page.evaluate(embedInPage, [url], DEADLINE_MS);
    assert.ok(near > far, `near ${near}, far ${far}`);
    assert.ok(Math.abs(length - 1) < 1e-4, `length ${length}`);
  });
});

// Runs in the page.
async function toolsInPage(url) {
  const { default: OpenAI } = await import('/openai/index.mjs');
  const { openai } = await import('/pkg/openai.js');
  const llm = await window.sluice.open(url, { context: 512 });
  const { fetch } = openai(llm);
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch, dangerouslyAllowBrowser: true });
  const user = { role: 'user', content: 'What time is it?' };
  const call = { id: 'c', type: 'function', function: { name: 'now', arguments: '{}' } };
  const messages = [
    user,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'noon' },
  ];
  const silent = await client.chat.completions.create({ model: 'm', messages, max_tokens: 2 });
  const body = JSON.stringify({ model: 'm', messages: [user], max_tokens: 100, stream: true, logit_bias: { 2: -100 } });
  await fetch('http://sluice.invalid/v1/chat/completions', { method: 'POST', body });
  const behind = await client.chat.completions.create({ model: 'm', messages: [user], max_tokens: 2 });
  await llm.close();
  return { silent, behind };
}

// Runs in the page.
async function chatInPage(url) {
  const { default: OpenAI } = await import('/openai/index.mjs');
  const { openai } = await import('/pkg/openai.js');
  const llm = await window.sluice.open(url, { context: 512 });
  const { fetch } = openai(llm, { model: 'smollm2' });
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch, dangerouslyAllowBrowser: true });
  const messages = [{ role: 'user', content: 'Name three colours.' }];
  const params = { model: 'smollm2', messages, max_tokens: 12, temperature: 0 };
  const stream = await client.chat.completions.create({ ...params, stream: true, stream_options: { include_usage: true } });
  const pieces = [];
  let reason, usage;
  for await (const { choices, usage: counted } of stream) {
    if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
    reason = choices[0]?.finish_reason ?? reason;
    usage = counted ?? usage;
  }
  const completion = await client.chat.completions.create(params);
  const refused = await client.chat.completions.create({ ...params, top_p: 5 }).catch(({ status, param, message }) => {
    return { status, param, message };
  });
  const asked = { model: 'm', prompt: 'The capital of France is', max_tokens: 4, temperature: 0, logprobs: 2 };
  const scored = await client.completions.create(asked);
  let direct = '';
  for await (const chunk of llm.chat(messages, { maxTokens: 12, temperature: 0 })) direct += chunk.text;
  await llm.close();
  return { pieces, reason, usage, whole: completion.choices[0].message.content, direct, refused, scored };
}

// Runs in the page.
async function embedInPage(url) {
  const { default: OpenAI } = await import('/openai/index.mjs');
  const { openai } = await import('/pkg/openai.js');
  const llm = await window.sluice.open(url, { context: 256, embeddings: true });
  const { fetch } = openai(llm);
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://sluice.invalid/v1', fetch, dangerouslyAllowBrowser: true });
  const input = ['How do I bake bread?', 'What is a recipe for a loaf of bread?', 'The train to Berlin leaves at noon.'];
  const { data } = await client.embeddings.create({ model: 'any', input });
  await llm.close();
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const [text, near, far] = data.map(({ embedding }) => embedding);
  return { near: dot(text, near), far: dot(text, far), length: dot(text, text) };
}
