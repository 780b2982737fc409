// Uses the package on a bare page (scripts/serve/bare-page.mjs): opens a model, generates or takes logits, gives JSON back.

/**
 * Runs `job` on the page and resolves to what it found: for `generate` `{ ids, text, finishReason, stats, config }`, for `logits`
 * `{ stats, config }` (the numbers go to the server's `/out`). A failure of the engine is `{ error: { name, code, message, details } }`.
 *
 * A job is `{ urls | files | store, open, generate | logits }`: where the model is, options of `open`, and either
 * `{ prompt, options }` or `{ ids, chunk }`.
 */
export async function runJob(page, job, deadlineMs) {
  await page.waitFor(() => window.sluice !== undefined, [], 60_000);
  if (job.files !== undefined) await page.setFiles('input[type=file]', job.files);
  return page.evaluate(inPage, [job], deadlineMs);
}

// Runs in the page.
async function inPage(job) {
  const { open } = window.sluice;
  let engine = null;
  try {
    engine = await open(await findSource(), job.open);
    const found = job.logits === undefined ? await generate() : await logits();
    return { ...found, config: engine.config, model: engine.model };
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

  async function logits() {
    for await (const position of engine.logits(job.logits.ids, { chunk: job.logits.chunk })) {
      await fetch('/out', { method: 'POST', body: position });
    }
    return { stats: engine.stats };
  }

  async function findSource() {
    if (job.files !== undefined) return [...document.querySelector('input[type=file]').files];
    if (!job.store) return job.urls;
    const root = await navigator.storage.getDirectory();
    const handles = job.urls.map(async (url) => {
      const handle = await root.getFileHandle(url.split('/').pop(), { create: true });
      await (await fetch(url)).body.pipeTo(await handle.createWritable());
      return handle;
    });
    return Promise.all(handles);
  }
}
