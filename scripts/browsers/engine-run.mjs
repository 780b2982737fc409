// Uses the package on a bare page (scripts/serve/bare-page.mjs): opens a model, generates or takes logits, gives JSON back.

/**
 * Runs `job` on the page and resolves to what it found: for `generate` `{ ids, text, finishReason, stats }`, for `logits` `{ stats }`
 * (the numbers go to the server's `/out`), for `embed` `{ vectors, tokens, stats }`; with all of them `{ config, model, plan, memory }`, the last being `stats.memoryBytes` after open
 * and after each answer. A failure of the engine is `{ error: { name, code, message, details } }`.
 *
 * A job is `{ urls | files | stored, open, generate | logits | embed, times }`: where the model is (`stored`: names that `storeFiles` gave),
 * options of `open`, one of `{ prompt, options }`, `{ ids, chunk }` and `{ texts, options }`, and how often to ask (the last answer is given back).
 */
export async function runJob(page, job, deadlineMs) {
  await page.waitFor(() => window.sluice !== undefined, [], 60_000);
  if (job.files !== undefined) {
    await page.evaluate(() => void (document.querySelector('input[type=file]').value = '')); // WebKit's driver adds to what is there
    await page.setFiles('input[type=file]', job.files);
  }
  return page.evaluate(inPage, [job], deadlineMs);
}

/** Copies what the URLs give into OPFS, one file after the other; resolves to the names for a job's `stored`. */
export async function storeFiles(page, urls, deadlineMs) {
  return page.evaluate(storeInPage, [urls], deadlineMs);
}

// Runs in the page.
async function storeInPage(urls) {
  const root = await navigator.storage.getDirectory();
  const names = [];
  for (const url of urls) {
    const name = url.split('/').pop();
    const handle = await root.getFileHandle(name, { create: true });
    const writable = await handle.createWritable(); // first: a body that nobody reads keeps its connection
    await (await fetch(url)).body.pipeTo(writable);
    names.push(name);
  }
  return names;
}

// Runs in the page.
async function inPage(job) {
  const { open } = window.sluice;
  let engine = null;
  try {
    engine = await open(await findSource(), job.open);
    const memory = [engine.stats.memoryBytes];
    let found;
    for (let time = 0; time < (job.times ?? 1); time++) {
      if (job.embed !== undefined) found = await embed();
      else found = job.logits === undefined ? await generate() : await logits();
      memory.push(engine.stats.memoryBytes);
    }
    return { ...found, memory, config: engine.config, model: engine.model, plan: engine.plan };
  } catch (error) {
    return { error: { name: error.name, code: error.code, message: error.message, details: error.details } };
  } finally {
    await engine?.close();
  }

  async function generate() {
    const ids = [];
    let text = '';
    let finishReason = null;
    for await (const chunk of engine.generate(job.generate.prompt, job.generate.options)) {
      if (chunk.id !== null) ids.push(chunk.id);
      text += chunk.text;
      finishReason = chunk.finishReason;
    }
    return { ids, text, finishReason, stats: engine.stats };
  }

  async function embed() {
    const { vectors, tokens } = await engine.embed(job.embed.texts, job.embed.options);
    return { vectors: vectors.map((vector) => [...vector]), tokens, stats: engine.stats };
  }

  async function logits() {
    for await (const position of engine.logits(job.logits.ids, { chunk: job.logits.chunk })) {
      await fetch('/out', { method: 'POST', body: position });
    }
    return { stats: engine.stats };
  }

  async function findSource() {
    if (job.files !== undefined) return [...document.querySelector('input[type=file]').files];
    if (job.stored === undefined) return job.urls;
    const root = await navigator.storage.getDirectory();
    return Promise.all(job.stored.map((name) => root.getFileHandle(name)));
  }
}
