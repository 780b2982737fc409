// What specs of the store do in a page that has the package; nothing here leads outside it.

/** Answers, and closes the engine when all of the model is stored. */
export async function answerAndKeep(url, { open, generate }) {
  let engine;
  try {
    engine = await window.sluice.open(url, open);
    const ids = [];
    for await (const { id } of engine.generate(generate.prompt, generate.options)) if (id !== null) ids.push(id);
    const address = new URL(url);
    address.search = address.hash = '';
    for (;;) {
      const listed = await window.sluice.models.list();
      if (listed.find(({ urls }) => urls[0] === address.href)?.complete) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return { ids, plan: engine.plan };
  } catch ({ code, message }) {
    return { error: { code, message } };
  } finally {
    await engine?.close();
  }
}

export async function removeAll() {
  const listed = await window.sluice.models.list();
  for (const { id } of listed) await window.sluice.models.remove(id);
  return listed;
}

export function begin(url, options) {
  window.opening = window.sluice.open(url, options);
  window.opening.catch(() => undefined);
  return null;
}

/** Answers with what `begin` opens: resolves to how it failed, and what is stored then. */
export async function answerOpening({ prompt, options }) {
  try {
    const engine = await window.opening;
    window.opened = engine;
    for await (const { id } of engine.generate(prompt, options)) void id;
    for (let i = 0; i < 100; i += 1) {
      // What stays in memory was not all there yet: the next pass reads what is missing.
      for await (const { id } of engine.generate(prompt, options)) void id;
    }
    return {};
  } catch ({ code, message, details }) {
    return { error: { code, message, details }, listed: await window.sluice.models.list() };
  } finally {
    await window.opened?.close();
  }
}

export async function importPicked(url) {
  try {
    return await window.sluice.models.import(document.querySelector('input[type=file]').files[0], url);
  } catch ({ code, message }) {
    return { code, message };
  }
}
