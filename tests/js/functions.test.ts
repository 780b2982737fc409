/** The functions of the built modules: none is so large that a browser takes tens of megabytes to compile it when it gets hot. */

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

/** Chromium's optimising compiler takes some 100 bytes of memory for a byte of wasm, beside the model's budget. */
const MOST_BYTES = 40_000;

for (const build of readdirSync('pkg/wasm')) {
  test(`the largest function of ${build} is small`, () => {
    const sizes = functionSizes(readFileSync(`pkg/wasm/${build}/sluice_bg.wasm`));
    assert.ok(sizes.length > 500, `only ${sizes.length} functions were found`);
    const largest = Math.max(...sizes);
    assert.ok(largest <= MOST_BYTES, `${largest} bytes: keep kernels apart with #[inline(never)]`);
  });
}

/** Bytes of each body in the module's code section. */
function functionSizes(module: Uint8Array): number[] {
  let at = 8; // magic and version
  const number = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = module[at++] ?? assert.fail('the module ends within a number');
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  const sizes: number[] = [];
  while (at < module.length) {
    const section = module[at++];
    const end = number() + at;
    if (section === CODE_SECTION) {
      for (let left = number(); left > 0; left--) {
        const size = number();
        sizes.push(size);
        at += size;
      }
      assert.equal(at, end, 'bodies fill the section');
    }
    at = end;
  }
  return sizes;
}

const CODE_SECTION = 10;
