// Which Rust compiles for wasm32: rustup's toolchain with the target installed, or Debian's packages building std themselves.
import { access } from 'node:fs/promises';
import path from 'node:path';
import { probe } from '../command.mjs';
import { toolsDir } from '../repo.mjs';

export const WASM_TARGET = 'wasm32-unknown-unknown';
const DEBIAN_LINKER = 'wasm-ld-22';
const DEBIAN_STD_SOURCE = '/usr/lib/rustlib/src/rust/library/std/Cargo.toml';

const exists = (file) =>
  access(file).then(
    () => true,
    () => false,
  );

/** Is the wasm32 standard library part of the toolchain that `rustc` in PATH belongs to? */
export async function hasRustupTarget() {
  const dir = await probe('rustc', ['--print', 'target-libdir', '--target', WASM_TARGET]);
  return dir !== null && exists(dir.trim());
}

/** Is the toolchain's std source there, which builds with threads compile anew? */
export async function hasRustSource() {
  const sysroot = await probe('rustc', ['--print', 'sysroot']);
  return sysroot !== null && exists(path.join(sysroot.trim(), 'lib/rustlib/src/rust/library/std/Cargo.toml'));
}

/** Are Debian's rustc-web, rust-web-src and lld there? */
export async function hasDebianToolchain() {
  return (
    (await exists(DEBIAN_STD_SOURCE)) &&
    (await probe('/usr/bin/cargo', ['--version'])) !== null &&
    (await probe(DEBIAN_LINKER, ['--version'])) !== null
  );
}

/**
 * How to call cargo for wasm32: `{ route, cargo, env, args, rustflags }`; args go before cargo's own, rustflags are added to the build's.
 * `null` when no route is there.
 */
export async function wasmToolchain({ threads }) {
  const buildStd = ['-Z', 'build-std=std,panic_abort'];
  if (await hasRustupTarget()) {
    if (!threads) return { route: 'rustup', cargo: 'cargo', env: {}, args: [], rustflags: [] };
    if (await hasRustSource())
      return { route: 'rustup', cargo: 'cargo', env: { RUSTC_BOOTSTRAP: '1' }, args: buildStd, rustflags: [] };
  }
  if (await hasDebianToolchain()) {
    // PATH, or rustup's proxies would run as cargo's subcommands.
    const env = { RUSTC_BOOTSTRAP: '1', RUSTC: '/usr/bin/rustc', PATH: `/usr/bin:${process.env['PATH']}` };
    return { route: 'debian', cargo: '/usr/bin/cargo', env, args: buildStd, rustflags: [`-Clinker=${DEBIAN_LINKER}`] };
  }
  return null;
}

/** The `wasm-bindgen` programs (CLI or test runner) of exactly this version: in `.tools`, else in PATH, else `null`. */
export async function findBindgen(program, version) {
  for (const candidate of [path.join(toolsDir, 'bin', program), program]) {
    const text = await probe(candidate, ['--version']);
    if (text?.trim().split(' ').at(-1) === version) return candidate;
  }
  return null;
}
