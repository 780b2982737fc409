// The Rust tests, natively; and the native command itself, as users build it.
import { counted, runAsProgram, single, sum } from './tally.mjs';

/** Builds the command, then runs `cargo test`. */
export async function native() {
  return sum([
    await single('cargo', ['build', '--quiet', '--release', '--bins']),
    // The tests run real models, which takes optimised code.
    await counted('cargo', ['test', '--quiet', '--no-fail-fast', '--config', 'profile.test.opt-level=3']),
  ]);
}

await runAsProgram(import.meta.filename, native);
