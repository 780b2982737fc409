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
 * Runs a program and waits for it. Its output is shown as it comes, or with `capture` kept: standard output is returned, all of
 * it belongs to the error of a failure. `captureStdout` keeps standard output only.
 * `env` is added to ours; a variable set to `undefined` is taken away.
 */
export async function run(command, args, { capture = false, captureStdout = capture, env = {}, cwd = root } = {}) {
  const line = [command, ...args].join(' ');
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', captureStdout ? 'pipe' : 'inherit', capture ? 'pipe' : 'inherit'],
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

/** Runs a program, shows its output as it comes and returns all of it with the exit code: for test runners, whose text is read. */
export async function runShown(command, args, { env = {}, cwd = root } = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const show = (stream) => (text) => {
    output += text;
    stream.write(text);
  };
  child.stdout.setEncoding('utf8').on('data', show(process.stdout));
  child.stderr.setEncoding('utf8').on('data', show(process.stderr));
  const code = await new Promise((resolve) => {
    child.once('error', (error) => {
      output += error.message;
      resolve(127);
    });
    child.once('close', (status) => resolve(status ?? 1));
  });
  return { code, output };
}

/** What a program prints, or `null` when it is missing or fails: for probing. */
export async function probe(command, args, options = {}) {
  try {
    return await run(command, args, { ...options, capture: true });
  } catch {
    return null;
  }
}
