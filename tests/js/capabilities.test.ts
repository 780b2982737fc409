/** The probes run and agree with what this Node can do. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capabilities } from '../../js/capabilities.js';

test('Node has SIMD, and the choice follows from the probes', () => {
  const found = capabilities();
  assert.equal(found.simd, true);
  assert.equal(found.build, found.relaxedSimd ? 'relaxed' : 'simd');
  assert.equal(found.crossOriginIsolated, false);
  assert.equal(found.reasons.at(-1), 'one compute thread: outside a browser the engine runs in one worker thread');
});

test('without WebAssembly there is no build, and a reason', (t) => {
  t.mock.method(WebAssembly, 'validate', () => false);
  const found = capabilities();
  assert.deepEqual([found.simd, found.relaxedSimd, found.build], [false, false, null]);
  assert.match(found.reasons[0] ?? '', /SIMD is missing/);
});
