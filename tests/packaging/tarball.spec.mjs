// What npm would publish: pkg/ and little else, within its budget, and clean by the judgement of publint and attw.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { run } from '../../scripts/command.mjs';
import { consumer, pack } from '../../scripts/packaging/consumer.mjs';
import { bin, root } from '../../scripts/repo.mjs';

const text = (file) => readFile(path.join(root, file), 'utf8');
const manifest = JSON.parse(await text('package.json'));

describe('the tarball', () => {
  it('holds pkg/, the manifest, the licences and the README, and nothing else', async () => {
    const { files } = await pack();
    const beside = files.map((file) => file.path).filter((file) => !file.startsWith('pkg/'));
    assert.deepEqual(beside.sort(), ['LICENSE', 'LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'package.json']);
  });

  it('keeps to its budget of bytes and files', async () => {
    const { tarball } = JSON.parse(await text('scripts/budgets.json'));
    const { size, unpackedSize, entryCount } = await pack();
    assert.ok(size <= tarball.packedBytes, `${size} bytes packed, ${tarball.packedBytes} are allowed`);
    assert.ok(unpackedSize <= tarball.unpackedBytes, `${unpackedSize} bytes, ${tarball.unpackedBytes} are allowed`);
    assert.ok(entryCount <= tarball.files, `${entryCount} files, ${tarball.files} are allowed`);
  });

  it('has a source map for every script, with the sources inside, and these are what we wrote', async () => {
    const { files } = await pack();
    const names = new Set(files.map((file) => file.path));
    const scripts = [...names].filter((name) => name.endsWith('.js'));
    const written = new Set();
    for (const name of scripts) {
      assert.ok(names.has(`${name}.map`), name);
      const { sources, sourcesContent } = JSON.parse(await text(`${name}.map`));
      for (const [index, source] of sources.entries()) {
        if (source.endsWith('/sluice.js')) continue; // the glue of a wasm module is generated
        assert.match(source, /(^|\/)js\/.*\.ts$/, name);
        assert.ok(sourcesContent[index].length > 0, source);
        written.add(path.basename(source));
      }
    }
    for (const source of ['engine.ts', 'errors.ts', 'openai.ts', 'main.ts', 'helper.ts', 'download.ts', 'globals.ts']) {
      assert.ok(written.has(source), source);
    }
  });

  it('fetches nothing from elsewhere and makes no worker of a blob', async () => {
    const { files } = await pack();
    for (const { path: name } of files.filter((file) => file.path.endsWith('.js'))) {
      const code = await text(name);
      // Names that end in .invalid are nobody's.
      assert.doesNotMatch(code, /https?:\/\/(?![\w.-]*\.invalid\b)/, name);
      assert.doesNotMatch(code, /\bimport\(|\beval\(|new Function/, name);
      // wasm-bindgen's glue has a fall-back for browsers without Atomics.waitAsync; the consumers run under a policy that forbids it.
      const { sources, sourcesContent } = JSON.parse(await text(`${name}.map`));
      for (const [index, source] of sources.entries()) assert.doesNotMatch(sourcesContent[index], /createObjectURL/, source);
    }
  });

  it('has the version of the crate, and cannot be published by mistake', async () => {
    const [, version] = /^version = "(.*)"/m.exec(await text('Cargo.toml'));
    assert.equal(manifest.version, version);
    assert.equal(manifest.private, true);
  });

  it('publint has nothing to say', async () => {
    const { file } = await pack();
    const bytes = await readFile(file);
    const { messages } = await publint({ pack: { tarball: bytes.buffer }, level: 'suggestion' });
    assert.deepEqual(
      messages.map((message) => formatMessage(message, manifest)),
      [],
    );
  });

  it('a typed program compiles against it, strictly, its declarations included', async () => {
    const home = await consumer('typescript');
    for (const resolution of [
      ['--module', 'esnext', '--moduleResolution', 'bundler'],
      ['--module', 'nodenext'],
    ]) {
      await run(process.execPath, [bin('typescript', 'bin/tsc'), '-p', home, ...resolution], { capture: true });
    }
  });

  it('its types resolve wherever ES modules do', async () => {
    const { file } = await pack();
    const attw = path.join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
    await run(process.execPath, [attw, file, '--profile', 'esm-only', '--format', 'table-flipped'], { capture: true });
  });
});
