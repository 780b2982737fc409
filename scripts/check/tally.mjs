// What checks count: passed and failed, read off the output of the test runners.
import { runShown } from '../command.mjs';

/** Adds counts up. */
export function sum(counts) {
  return counts.reduce((all, { passed, failed }) => ({ passed: all.passed + passed, failed: all.failed + failed }), {
    passed: 0,
    failed: 0,
  });
}

/** A program that passes or fails as a whole. */
export async function single(command, args, options) {
  const { code } = await runShown(command, args, options);
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** A test runner: its own counts; one that fails without counting a failure (it crashed) counts as one. */
export async function counted(command, args, options) {
  const { code, output } = await runShown(command, args, options);
  const counts = count(output);
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
}

/** Counts in the text of cargo test, wasm-bindgen-test and node --test; where no test ran, that is the failure. */
export function count(output) {
  const total = (pattern) => [...output.matchAll(pattern)].reduce((all, [, number]) => all + Number(number), 0);
  const passed = total(/^test result: .*?(\d+) passed/gm) + total(/^(?:# |ℹ )pass (\d+)/gm);
  const failed = total(/^test result: .*?(\d+) failed/gm) + total(/^(?:# |ℹ )fail (\d+)/gm);
  return passed + failed === 0 ? { passed, failed: 1 } : { passed, failed };
}

/** Runs a check when its file is the program, and ends the process by its result. */
export async function runAsProgram(file, check) {
  if (file !== process.argv[1]) return;
  const { passed, failed } = await check().catch((error) => {
    console.error(error.message);
    return { passed: 0, failed: 1 };
  });
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
