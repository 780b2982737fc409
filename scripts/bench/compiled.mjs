// A benchmark of the crate (`benches/`) as a wasm module.
import { cargoFor } from '../build/wasm.mjs';
import { run } from '../command.mjs';

/** Compiles the benchmark `name` with the flags of a build, and `rustcArgs` besides: the file. */
export async function compileBench(name, build, rustcArgs = []) {
  const { cargo, args, env } = await cargoFor(build);
  const options = [
    'rustc',
    '--quiet',
    '--profile',
    'bench',
    '--bench',
    name,
    '--message-format=json-render-diagnostics',
    ...args,
  ];
  const printed = await run(cargo, [...options, '--', ...rustcArgs], { captureStdout: true, env });
  const messages = printed
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return messages.find(({ executable, target }) => executable && target.name === name).executable;
}
