// The wasm-bindgen CLI, of exactly the version of the crate (their formats must match), into the clone's .tools/.
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { findBindgen } from '../build/toolchain.mjs';
import { bindgenVersion } from '../build/wasm.mjs';
import { CommandError, run } from '../command.mjs';
import { toolsDir } from '../repo.mjs';

/** Compiles the CLI and its test runner with cargo unless they are there. */
export async function wasmBindgen() {
  const version = await bindgenVersion();
  const found = [await findBindgen('wasm-bindgen', version), await findBindgen('wasm-bindgen-test-runner', version)];
  if (!found.includes(null)) return `${version} is there`;
  const target = path.join(toolsDir, 'build');
  const args = [
    'install',
    'wasm-bindgen-cli',
    '--version',
    version,
    '--root',
    toolsDir,
    '--target-dir',
    target,
    '--force',
    '--quiet',
  ];
  try {
    await install(args);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw Object.assign(
      new Error(
        `wasm-bindgen-cli ${version} does not install: see cargo's reason below, then run \`cargo ${args.slice(0, 4).join(' ')}\``,
      ),
      { output: error.output },
    );
  }
  await rm(target, { recursive: true, force: true });
  return `${version} compiled`;
}

// The release's lock file names a version that a registry may not have, newest dependencies may not compile: try both.
async function install(args) {
  // Used a few times per build: compiling it must not take longer than it saves.
  const env = { RUSTFLAGS: undefined, CARGO_BUILD_TARGET: undefined, CARGO_PROFILE_RELEASE_OPT_LEVEL: '1' };
  try {
    await run('cargo', args, { capture: true, env });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    await run('cargo', [...args, '--locked'], { capture: true, env });
  }
}
