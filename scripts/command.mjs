// Runs other programs: a non-zero exit is an error that names the program and shows what it printed.
import { spawn } from 'node:child_process';
import { root } from './repo.mjs';

/** A program ended with a non-zero exit, a signal, or could not be started; `output` is what it printed. */
export class CommandError extends Error {
  constructor(line, reason, output) {
    super(`${line}: ${reason}`);
    this.output = output;
  }
}

/**
 * Runs a program and waits for it. Its output is shown as it comes, or with `capture` returned (and shown only on failure).
 * `env` is added to ours; a variable set to `undefined` is taken away.
 */
export async function run(command, args, { capture = false, env = {}, cwd = root } = {}) {
  const line = [command, ...args].join(' ');
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', capture ? 'pipe' : 'inherit', capture ? 'pipe' : 'inherit'],
  });
  let stdout = '';
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    stdout += text;
    output += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text) => (output += text));
  const reason = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.code === 'ENOENT' ? 'not found' : error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? null : signal ? `killed by ${signal}` : `exit ${code}`));
  });
  if (reason !== null) throw new CommandError(line, reason, output);
  return stdout;
}

/** What a program prints, or `null` when it is missing or fails: for probing. */
export async function probe(command, args, options = {}) {
  try {
    return await run(command, args, { ...options, capture: true });
  } catch {
    return null;
  }
}
