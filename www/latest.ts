/** Asynchronous work of which only the latest request matters: what came meanwhile is skipped but for the last. */

/** Gives back a function that asks for `work(input)`; `show` gets the results that are still wanted, in order. */
export function latest<In, Out>(work: (input: In) => Promise<Out>, show: (result: Out, input: In) => void): (input: In) => void {
  let running = false;
  let next: { input: In } | undefined;
  const run = async (): Promise<void> => {
    running = true;
    while (next !== undefined) {
      const { input } = next;
      next = undefined;
      try {
        const result = await work(input);
        show(result, input);
      } catch {
        // the work was given up from outside (a closed verdict): nothing to show
      }
    }
    running = false;
  };
  return (input) => {
    next = { input };
    if (!running) void run();
  };
}
