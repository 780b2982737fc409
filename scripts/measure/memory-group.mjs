// A memory limit for a program and all it starts, page cache included, by a control group of its own (Linux): a scope of systemd's where
// systemd runs, else a child of a group that the caller names, because only a group's owner may give it children.
import { existsSync, readFileSync, rmdirSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { sleep } from '../browsers/deadline.mjs';

const EMPTY_MS = 10_000;

/**
 * Runs `use({ wrap, usage })`. `wrap(program)` gives a program that does the same within the limit; `usage(pid)` says what the group
 * that `pid` is in has seen: `{ peakBytes, limitHits, oomKills }`. `group` is a folder below the memory controller's mount, `own` for
 * the group of this process, or undefined for systemd. What was made is removed in the end, with whatever still runs in it.
 */
export async function withMemoryLimit(limitBytes, group, use) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'held-'));
  const wrapper = async (lines) => {
    const file = path.join(folder, 'program');
    await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'));
    await chmod(file, 0o755);
    return file;
  };
  try {
    if (group !== undefined) return await inChild(limitBytes, group === 'own' ? ownGroup() : group, wrapper, use);
    if (!existsSync('/run/systemd/system'))
      throw new Error('no systemd runs here: name a group that may get children by --group');
    const user = process.getuid() === 0 ? [] : ['--user'];
    const scope = ['systemd-run', ...user, '--quiet', '--scope', '-p', `MemoryMax=${limitBytes}`, '-p', 'MemorySwapMax=0', '--'];
    return await use({
      wrap: (program) => wrapper([`exec ${scope.join(' ')} '${program}' "$@"`]),
      usage: (pid) => usage(groupOf(pid)),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function inChild(limitBytes, parent, wrapper, use) {
  const { limit } = versionOf(parent);
  const child = path.join(parent, `sluice-held-${process.pid}`);
  await mkdir(child);
  const removeNow = () => {
    for (const pid of members(child)) end(pid);
    try {
      rmdirSync(child);
    } catch {
      console.error(`memory-group: ${child} is left behind: remove it when it is empty`);
    }
  };
  process.once('exit', removeNow);
  try {
    await writeFile(path.join(child, limit), String(limitBytes));
    const wrap = (program) => wrapper([`echo $$ > '${child}/cgroup.procs' || exit 1`, `exec '${program}' "$@"`]);
    return await use({ wrap, usage: () => usage(child) });
  } finally {
    await emptied(child);
    process.removeListener('exit', removeNow);
    await rmdir(child);
  }
}

/** Waits until all that was started in the group has ended, and ends what has not. */
async function emptied(group) {
  for (const late = Date.now() + EMPTY_MS; members(group).length > 0; await sleep(100)) {
    if (Date.now() > late) for (const pid of members(group)) end(pid);
  }
}

function end(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

/** Processes of the group; none when it is gone. */
function members(group) {
  try {
    return readFileSync(path.join(group, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Names of the files of the two versions of control groups. */
function versionOf(group) {
  const has = (file) => existsSync(path.join(group, file));
  if (has('memory.limit_in_bytes')) return { limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes', one: true };
  if (has('memory.max') || has('cgroup.controllers')) return { limit: 'memory.max', peak: 'memory.peak', one: false };
  throw new Error(`${group} is no control group with a memory controller`);
}

async function usage(group) {
  const { peak, one } = versionOf(group);
  const text = (file) => readFile(path.join(group, file), 'utf8').catch(() => '');
  const counter = (lines, name) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(lines)?.[1] ?? NaN);
  const events = await text(one ? 'memory.oom_control' : 'memory.events');
  return {
    peakBytes: Number(await text(peak)),
    limitHits: one ? Number(await text('memory.failcnt')) : counter(events, 'max'),
    oomKills: counter(events, 'oom_kill'),
  };
}

const ownGroup = () => groupOf('self');

/** The folder of a process's group that has the memory controller. */
function groupOf(pid) {
  for (const line of readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n')) {
    const [, controllers, place] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers?.split(',').includes('memory')) return path.join('/sys/fs/cgroup/memory', place);
    if (controllers === '' && existsSync('/sys/fs/cgroup/cgroup.controllers')) return path.join('/sys/fs/cgroup', place);
  }
  throw new Error('no memory controller is mounted here');
}
