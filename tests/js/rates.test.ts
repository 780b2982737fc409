/** What was measured is kept from visit to visit where the browser lets us, and nothing fails where it does not. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { DeviceRates } from '../../js/protocol.js';
import { forgetRates, knownRates, rememberRates } from '../../js/rates.js';

const NOTHING: DeviceRates = { kernels: {}, storage: {} };
const RATES: DeviceRates = {
  kernels: { 'simd Q4_1 576 fast': { decodeWeightsPerSecond: 1e9, prefillWeightsPerSecond: 2e9 } },
  storage: { handle: 3e9 },
};

/** Gives the page this storage for the length of a test. */
function page(t: TestContext, storage: () => unknown): void {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'localStorage');
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, get: storage });
  forgetRates();
  t.after(() => {
    if (before === undefined) delete (globalThis as { localStorage?: unknown }).localStorage;
    else Object.defineProperty(globalThis, 'localStorage', before);
    forgetRates();
  });
}

class Kept {
  readonly items = new Map<string, string>();
  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.items.set(key, value);
  }
}

test('what was measured is there at the next visit, and grows', (t) => {
  const kept = new Kept();
  page(t, () => kept);
  assert.deepEqual(knownRates(), NOTHING);
  rememberRates(RATES);
  forgetRates();
  assert.deepEqual(knownRates(), RATES);
  rememberRates({ kernels: {}, storage: { blob: 1e9 } });
  forgetRates();
  assert.deepEqual(knownRates(), { ...RATES, storage: { handle: 3e9, blob: 1e9 } });
  assert.equal(kept.items.size, 1);
});

test('what is not ours, too old, or of another browser is measured again', (t) => {
  const kept = new Kept();
  page(t, () => kept);
  rememberRates(RATES);
  const [[key, good] = ['', '']] = kept.items;
  const parsed = JSON.parse(good) as Record<string, unknown>;
  const month = 31 * 24 * 3600 * 1000;
  const bad = [
    'no JSON',
    '[]',
    'null',
    JSON.stringify({ ...parsed, browser: 'another' }),
    JSON.stringify({ ...parsed, measured: Date.now() - month }),
    JSON.stringify({ ...parsed, measured: Date.now() + month }),
    JSON.stringify({ ...parsed, kernels: { 'simd Q4_1 576 fast': { decodeWeightsPerSecond: 1 } } }),
    JSON.stringify({ ...parsed, storage: { handle: -1 } }),
    JSON.stringify({ ...parsed, storage: { handle: '1' } }),
  ];
  for (const text of bad) {
    kept.items.set(key, text);
    forgetRates();
    assert.deepEqual(knownRates(), NOTHING, text);
  }
  kept.items.set(key, good);
  forgetRates();
  assert.deepEqual(knownRates(), RATES, 'the sound one is taken');
});

test('without storage the page remembers, and nothing throws', (t) => {
  const denied = (): never => {
    throw new DOMException('denied', 'SecurityError');
  };
  const full = { getItem: () => null, setItem: denied };
  for (const storage of [() => undefined, denied, () => full]) {
    page(t, storage);
    assert.deepEqual(knownRates(), NOTHING);
    rememberRates(RATES);
    assert.deepEqual(knownRates(), RATES);
  }
});
