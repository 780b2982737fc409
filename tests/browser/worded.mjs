// Encoders whose fixtures have no vocabulary get one in which a text spells the oracle's prompt: its ids are known, so is its vector.
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fixture } from './models.mjs';

/**
 * Writes `NAME.gguf` with a WordPiece vocabulary into `folder`; resolves to `{ name, model, text, vector }`: its path, and a text with
 * what llama.cpp makes of it.
 */
export async function wordedEncoder(name, folder) {
  const { prompt, n_vocab: size } = JSON.parse(await readFile(fixture('models', `${name}.json`), 'utf8'));
  const vector = new Float32Array((await readFile(fixture('models', `${name}.embedding.f32`))).buffer.slice(0));
  const words = Array.from({ length: size }, (_, id) => String.fromCharCode(97 + Math.floor(id / 26), 97 + (id % 26)));
  const tokenizer = [
    entry('model', 8, string('bert')),
    entry('tokens', 9, Buffer.concat([u32(8), u64(size), ...words.map((word) => string(`\u2581${word}`))])),
    entry('bos_token_id', 4, u32(prompt[0])),
    entry('seperator_token_id', 4, u32(prompt.at(-1))),
    entry('unknown_token_id', 4, u32(0)),
  ];
  const model = path.join(folder, `${name}.gguf`);
  await writeFile(model, withEntries(await readFile(fixture('models', `${name}.gguf`)), tokenizer));
  // The first and the last token stand around every text.
  const text = prompt.slice(1, -1).map((id) => words[id]);
  return { name, model, text: text.join(' '), vector };
}

/** A GGUF file whose tokenizer is `tokenizer`: tensor data keeps its place after the head, at a multiple of 32. */
function withEntries(file, tokenizer) {
  const nTensors = Number(file.readBigUInt64LE(8));
  const nEntries = Number(file.readBigUInt64LE(16));
  let at = 24;
  const kept = [];
  for (let i = 0; i < nEntries; i++) {
    const start = at;
    const key = text();
    value(number());
    if (key !== 'tokenizer.ggml.model') kept.push(file.subarray(start, at));
  }
  const tensors = at;
  for (let i = 0; i < nTensors; i++) {
    text();
    at += 4 + 8 * file.readUInt32LE(at) + 12;
  }
  const entries = [...kept, ...tokenizer];
  const head = [file.subarray(0, 16), u64(entries.length), ...entries, file.subarray(tensors, at)];
  return Buffer.concat([padded(Buffer.concat(head)), file.subarray(aligned(at))]);

  function number() {
    at += 4;
    return file.readUInt32LE(at - 4);
  }
  function text() {
    const length = Number(file.readBigUInt64LE(at));
    at += 8 + length;
    return file.toString('utf8', at - length, at);
  }
  function value(type) {
    if (type === 8) text();
    else if (type in SIZES) at += SIZES[type];
    else throw new Error(`no fixture has an entry of type ${type}`);
  }
}

const SIZES = { 4: 4, 5: 4, 6: 4, 7: 1 };
const aligned = (n) => Math.ceil(n / 32) * 32;
const padded = (bytes) => Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);
const u32 = (n) => Buffer.from(Uint32Array.of(n).buffer);
const u64 = (n) => Buffer.from(BigUint64Array.of(BigInt(n)).buffer);
const string = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const entry = (key, type, value) => Buffer.concat([string(`tokenizer.ggml.${key}`), u32(type), value]);
