// webpack 5 finds the worker and the wasm modules by itself.
export default { mode: 'production', entry: './main.js', performance: { hints: false } };
