// Builds the demo, www/, against the package as a user's project would: it imports `sluice-llm` by name, which the manifest's
// `exports` resolve to pkg/. So this is also the test that the package can be bundled.
import HtmlWebpackPlugin from 'html-webpack-plugin';
import MiniCssExtractPlugin from 'mini-css-extract-plugin';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import webpack from 'webpack';

const root = fileURLToPath(new URL('.', import.meta.url));
const WORKER = 'sw.js';

export default {
  mode: 'production',
  context: root,
  entry: { main: './www/main.ts', sw: './www/offline/worker.ts' },
  output: {
    path: path.join(root, 'dist'),
    // Browsers ask again for a service worker under the same name.
    filename: ({ chunk }) => (chunk.name === 'sw' ? WORKER : '[name].[contenthash:8].js'),
    chunkFilename: '[name].[contenthash:8].js',
    publicPath: 'auto',
    clean: true,
  },
  devtool: 'source-map',
  resolve: { extensions: ['.ts', '.js'], extensionAlias: { '.js': ['.js', '.ts'] } },
  module: {
    rules: [
      { test: /\.ts$/, loader: 'ts-loader', options: { configFile: path.join(root, 'www/tsconfig.json'), transpileOnly: true } },
      { test: /\.css$/, use: [MiniCssExtractPlugin.loader, 'css-loader'] },
    ],
  },
  plugins: [
    new HtmlWebpackPlugin({ template: './www/index.html', scriptLoading: 'module', chunks: ['main'] }),
    new MiniCssExtractPlugin({ filename: '[name].[contenthash:8].css' }),
    { apply: tellWorkerTheFiles },
  ],
  performance: { hints: false }, // the wasm modules are big; scripts/budgets.json holds their sizes
  stats: 'errors-warnings',
};

// The service worker keeps every file of the build. (Workbox's own plugin does the same and brings 270 packages.)
function tellWorkerTheFiles(compiler) {
  const name = 'tellWorkerTheFiles';
  compiler.hooks.thisCompilation.tap(name, (compilation) => {
    const stage = webpack.Compilation.PROCESS_ASSETS_STAGE_REPORT; // all names are final
    compilation.hooks.processAssets.tap({ name, stage }, (assets) => {
      const urls = Object.keys(assets).filter((url) => url !== WORKER && !/\.(map|txt)$/.test(url));
      const files = urls.map((url) => {
        const hashed = /[.]?[0-9a-f]{8,}\.\w+$/.test(url);
        return { url, revision: hashed ? null : createHash('sha256').update(assets[url].buffer()).digest('hex').slice(0, 16) };
      });
      const banner = `self.__FILES = ${JSON.stringify(files)};\n`;
      compilation.updateAsset(WORKER, (source) => new webpack.sources.ConcatSource(banner, source));
    });
  });
}
