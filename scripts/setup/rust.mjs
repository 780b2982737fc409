// A Rust that compiles for wasm32: rustup's target, or Debian's packages when rustup's servers are out of reach.
import { hasDebianToolchain, hasRustSource, hasRustupTarget, WASM_TARGET } from '../build/toolchain.mjs';
import { CommandError, probe, run } from '../command.mjs';
import { aptInstall, canApt } from './apt.mjs';

const DEBIAN_PACKAGES = ['rustc-web', 'cargo-web', 'rust-web-clippy', 'rust-web-src', 'lld-22'];

/** Makes sure one route is there and says which. */
export async function rust() {
  if ((await probe('cargo', ['--version'])) === null)
    throw new Error('cargo is missing: install Rust with rustup, then run this again');
  await linker();
  if ((await hasRustupTarget()) && (await hasRustSource()))
    return 'wasm32 target and std source of the rustup toolchain are there';
  if ((await hasRustupTarget()) && (await probe('rustup', ['--version'])) === null)
    return 'wasm32 target is there (no rustup: no builds with threads)';
  if (await hasDebianToolchain()) return "Debian's rustc-web is there";
  const refused = await byRustup();
  if (refused === null) return 'wasm32 target and std source installed by rustup';
  if (!canApt()) {
    throw new Error(
      `the target ${WASM_TARGET} is missing (${refused}): run \`rustup target add ${WASM_TARGET}\`, or as root \`apt-get install ${DEBIAN_PACKAGES.join(' ')}\``,
    );
  }
  await aptInstall(DEBIAN_PACKAGES);
  return `Debian's ${DEBIAN_PACKAGES.join(', ')} installed (rustup could not: ${refused})`;
}

// rustc links native programs (build scripts, macros, the command) with the system's C compiler.
async function linker() {
  if ((await probe('cc', ['--version'])) !== null) return;
  if (!canApt())
    throw new Error('a C compiler is missing, which Rust links with: install gcc (Debian: `apt-get install gcc libc6-dev`)');
  await aptInstall(['gcc', 'libc6-dev']);
}

// `null` when it worked, or the reason why not in a few words.
async function byRustup() {
  try {
    await run('rustup', ['target', 'add', WASM_TARGET], { capture: true });
    await run('rustup', ['component', 'add', 'rust-src'], { capture: true });
    return null;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const lines = error.output.trim().split('\n');
    return lines.find((line) => line.startsWith('error')) ?? (lines.at(-1) || error.message);
  }
}
