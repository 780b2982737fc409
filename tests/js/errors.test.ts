/** Error codes and their plain form. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERROR_CODES, SluiceError, fromPlainError, toPlainError } from '../../js/errors.js';

test('the codes are those that Rust has, in the same order', () => {
  // The native tests compare Rust's list with the same file.
  assert.deepEqual(ERROR_CODES, JSON.parse(readFileSync('tests/fixtures/error-codes.json', 'utf8')));
});

test('an error survives the way to the other side and back', () => {
  const error = new SluiceError('source_failed', 'no bytes', { status: 404 });
  const copy = fromPlainError(structuredClone(toPlainError(error)));
  assert.ok(copy instanceof SluiceError);
  assert.deepEqual(
    [copy.name, copy.code, copy.message, copy.details],
    ['SluiceError', 'source_failed', 'no bytes', { status: 404 }],
  );
});

test('an error with the right fields is enough: it need not be of the class', () => {
  const error = Object.assign(new Error('from wasm'), { code: 'invalid_model', details: { key: 'x' } });
  assert.deepEqual(toPlainError(error), { code: 'invalid_model', message: 'from wasm', details: { key: 'x' } });
});

test('everything else is internal and keeps its text to itself', () => {
  for (const thrown of [
    new TypeError('x is undefined'),
    'text',
    undefined,
    { code: 'invalid_model' },
    Object.assign(new Error('e'), { code: 'ENOENT' }),
  ]) {
    const { code, message } = toPlainError(thrown);
    assert.equal(code, 'internal');
    assert.doesNotMatch(message, /undefined|text/);
  }
});
