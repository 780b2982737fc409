// Builds the demo, www/, against the package as a user's project would: it imports `sluice-llm` by name, which the manifest's
// `exports` resolve to pkg/. So this is also the test that the package can be bundled.
import HtmlWebpackPlugin from 'html-webpack-plugin';
import MiniCssExtractPlugin from 'mini-css-extract-plugin';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));

export default {
  mode: 'production',
  context: root,
  entry: './www/main.ts',
  output: { path: path.join(root, 'dist'), filename: '[name].[contenthash:8].js', publicPath: 'auto', clean: true },
  devtool: 'source-map',
  resolve: { extensions: ['.ts', '.js'], extensionAlias: { '.js': ['.js', '.ts'] } },
  module: {
    rules: [
      { test: /\.ts$/, loader: 'ts-loader', options: { configFile: path.join(root, 'www/tsconfig.json'), transpileOnly: true } },
      { test: /\.css$/, use: [MiniCssExtractPlugin.loader, 'css-loader'] },
    ],
  },
  plugins: [
    new HtmlWebpackPlugin({ template: './www/index.html', scriptLoading: 'module' }),
    new MiniCssExtractPlugin({ filename: '[name].[contenthash:8].css' }),
  ],
  performance: { hints: false }, // the wasm modules are big; scripts/budgets.json holds their sizes
  stats: 'errors-warnings',
};
