// `npm test`: sets up what is missing, then runs every check. Its last line is `N passed, N failed`.
import { setup } from './setup/run.mjs';

try {
  await setup();
} catch (error) {
  console.error(`setup: ${error.message}`);
  console.log('0 passed, 1 failed');
  process.exit(1);
}
// Only now: these import npm packages.
const { runChecks } = await import('./check/run.mjs');
const { passed, failed } = await runChecks();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
