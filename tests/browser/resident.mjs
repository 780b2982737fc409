// What becomes of a model that cannot be stored, in any browser and for any reason.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { runJob } from '../../scripts/browsers/engine-run.mjs';
import { smollm2 } from './models.mjs';

/** Under `job`'s budget it is refused, in a sentence that says what to do and why; under the budget that this names it runs, fetched once. */
export async function assertResident(page, server, job, why, deadlineMs) {
  const url = server.faulty('sound', smollm2);
  const { error } = await runJob(page, { urls: [url], ...job }, deadlineMs);
  assert.equal(error?.code, 'out_of_memory', error?.message);
  assert.match(error.message, /raise `memory` to \d+ or more/);
  assert.match(error.message, why);
  server.requests.splice(0);
  const open = { ...job.open, memory: error.details.neededBytes };
  const found = await runJob(page, { urls: [url], ...job, open, times: 2 }, deadlineMs);
  assert.deepEqual([found.error, found.stats?.residentShare], [undefined, 1]);
  const fetched = server.requests.reduce((sum, { bytes }) => sum + bytes, 0);
  assert.ok(fetched <= 1.05 * (await stat(smollm2)).size, `${fetched} bytes for two answers`);
  return found;
}
