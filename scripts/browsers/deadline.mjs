// Hard deadlines: nothing that a browser does may be waited for without end.

/** Something did not happen in time. */
export class DeadlineError extends Error {}

/** The promise's result, or a `DeadlineError` that names `what` after `ms` milliseconds. */
export async function withDeadline(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(`${what}: nothing within ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after `ms` milliseconds. */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
