// A worker of scripts/bench/barrier.mjs: first made ready with the module and its memory, then it runs the benchmark in its place.
const PAGE = 65536;
const STACK_PAGES = 16;

onmessage = async ({ data: { module, memory, number, threads } }) => {
  const lines = [];
  const imports = { env: { memory } };
  // The module's other imports belong to parts of the crate that do not run here.
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== 'function') continue;
    (imports[from] ??= {})[name] = () => {
      throw new Error(`${from}.${name} is not here`);
    };
  }
  Object.assign(imports.bench, {
    now: () => performance.now(),
    line: (at, bytes) => void lines.push(new TextDecoder().decode(new Uint8Array(memory.buffer, at, bytes).slice())),
    number: () => number,
    threads: () => threads,
  });
  const { exports } = await WebAssembly.instantiate(module, imports);
  const stack = memory.grow(STACK_PAGES + 1) * PAGE;
  exports.__stack_pointer.value = stack + STACK_PAGES * PAGE;
  exports.__wasm_init_tls(stack + STACK_PAGES * PAGE);
  onmessage = () => {
    exports.main(0, 0);
    postMessage(lines);
  };
  postMessage('ready');
};
