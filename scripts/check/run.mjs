// Everything that CI checks, in order of price; one that fails does not keep the others from running.
import { buildPackage } from '../build/run.mjs';
import { buildSite } from '../build/site.mjs';
import { browser } from './browser.mjs';
import { docs } from './docs.mjs';
import { fmt } from './fmt.mjs';
import { js } from './js.mjs';
import { lint } from './lint.mjs';
import { native } from './native.mjs';
import { packaging } from './packaging.mjs';
import { size } from './size.mjs';
import { runAsProgram, sum } from './tally.mjs';
import { wasm } from './wasm.mjs';

async function build() {
  await buildPackage();
  await buildSite();
  return { passed: 1, failed: 0 };
}

const checks = { fmt, docs, build, size, lint, js, native, wasm, browser, packaging };

/** Runs all checks and says a line for each. */
export async function runChecks() {
  const counts = [];
  const lines = [];
  for (const [name, check] of Object.entries(checks)) {
    console.log(`\n── ${name}`);
    const started = performance.now();
    const result = await check().catch((error) => {
      console.error(`${name}: ${error.message}\n${error.output ?? ''}`);
      return { passed: 0, failed: 1 };
    });
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    lines.push(`check: ${name}: ${result.passed} passed, ${result.failed} failed (${seconds} s)`);
    counts.push(result);
  }
  console.log(`\n${lines.join('\n')}`);
  return sum(counts);
}

await runAsProgram(import.meta.filename, runChecks);
