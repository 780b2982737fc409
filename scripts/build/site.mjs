// The demo: www/ → dist/ by webpack, against pkg/.
import webpack from 'webpack';
import config from '../../webpack.config.js';

/** Bundles the demo; a webpack error or warning fails the build with webpack's own text. */
export async function buildSite() {
  const started = performance.now();
  const compiler = webpack(config);
  const stats = await new Promise((resolve, reject) =>
    compiler.run((error, result) => (error ? reject(error) : resolve(result))),
  );
  await new Promise((resolve, reject) => compiler.close((error) => (error ? reject(error) : resolve())));
  if (stats.hasErrors() || stats.hasWarnings()) throw new Error(`the demo does not bundle\n${stats.toString('errors-warnings')}`);
  console.log(`build: demo (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}
