// Chat templates that nest deep, on the stack of a real worker: the deepest that run do, what is deeper ends with an error by name, and the
// engine works on.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { browserNames } from '../../scripts/browsers/index.mjs';
import { onBarePage } from './bare.mjs';
import { smollm2 } from './models.mjs';

const DEADLINE_MS = 60_000;

/** Templates `n` levels deep, each of a kind whose bound is `most`. */
const kinds = {
  list: { most: 22, of: (n) => `{{ ${'['.repeat(n)}1${']'.repeat(n)} }}` },
  mapping: { most: 22, of: (n) => `{{ ${"{'a': ".repeat(n)}1${'}'.repeat(n)} }}` },
  parentheses: { most: 22, of: (n) => `{{ ${'('.repeat(n)}1${')'.repeat(n)} }}` },
  argument: { most: 22, of: (n) => `{{ ${'1|default('.repeat(n)}1${')'.repeat(n)} }}` },
  not: { most: 140, of: (n) => `{{ ${'not '.repeat(n)}1 }}` },
  sum: { most: 199, of: (n) => `{{ 1${' + 1'.repeat(n)} }}` },
  and: { most: 199, of: (n) => `{{ 1${' and 1'.repeat(n)} }}` },
  filters: { most: 199, of: (n) => `{{ 'x'${'|upper'.repeat(n)} }}` },
  attributes: { most: 199, of: (n) => `{{ messages is defined or messages${'.a'.repeat(n - 2)} }}` },
  elif: { most: 200, of: (n) => `{% if 0 %}${'{% elif 0 %}'.repeat(n)}{% endif %}` },
  if: { most: 40, of: (n) => `${'{% if 1 %}'.repeat(n)}x${'{% endif %}'.repeat(n)}` },
  for: { most: 40, of: (n) => `${'{% for x in [1] %}'.repeat(n)}x${'{% endfor %}'.repeat(n)}` },
  filter: { most: 40, of: (n) => `${'{% filter upper %}'.repeat(n)}x${'{% endfilter %}'.repeat(n)}` },
  macro: { most: 40, of: (n) => `${'{% macro m() %}'.repeat(n)}x${'{% endmacro %}'.repeat(n)}` },
  value: {
    most: 60,
    of: (n) => `{% set s = namespace(a=[]) %}{% for i in range(${n}) %}{% set s.a = [s.a] %}{% endfor %}{{ s.a }}`,
  },
};
const endless = [
  '{% macro m(a) %}{{ m([[[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]]]) }}{% endmacro %}{{ m(0) }}',
  '{% macro m(a, n) %}{% if n %}{{ m([[[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]]], n - 1) }}{% else %}{{ a }}{{ raise_exception("seen") }}{% endif %}{% endmacro %}{{ m(0, 45) }}',
  '{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}',
  '{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}',
  '{% set ns = namespace(a=1) %}{% set ns.a = [ns] %}{{ ns }}',
];

describe('templates that nest deep', { timeout: 3 * DEADLINE_MS }, () => {
  for (const browser of browserNames) {
    it(`in ${browser}`, async () => {
      const { server, page, close } = await onBarePage(browser);
      try {
        const runs = Object.values(kinds).map(({ most, of }) => of(most));
        const refused = Object.values(kinds).flatMap(({ most, of }) => [of(most + 100), of(20_000)]);
        const url = server.addFile(smollm2);
        const found = await page.evaluate(inPage, [url, [...runs, ...refused, ...endless]], DEADLINE_MS);
        const names = Object.keys(kinds);
        assert.deepEqual(
          found.slice(0, runs.length).map((code, i) => [names[i], code]),
          names.map((name) => [name, 'rendered']),
        );
        for (const [i, code] of found.slice(runs.length, -1).entries()) assert.equal(code, 'invalid_option', `refusal ${i}`);
        assert.equal(found.at(-1), 'rendered', 'the engine works on');
      } finally {
        await close();
      }
    });
  }
});

// Runs in the page.
async function inPage(url, templates) {
  const llm = await window.sluice.open(url, { context: 64, cache: 'none' });
  const found = [];
  for (const template of [...templates, '{{ messages[0].content }}']) {
    const rendering = llm.renderChat([{ role: 'user', content: 'Hi' }], { template });
    found.push(
      await rendering.then(
        () => 'rendered',
        (error) => error.code,
      ),
    );
  }
  await llm.close();
  return found;
}
