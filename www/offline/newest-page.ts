/** The page from the network, as a rebuilt one must not be mixed with a kept one; the kept one when there is none soon. */

/** What the network gives, unless it fails or takes longer than `patienceMs`: then what is kept, and the failure where nothing is. */
export async function newestPage(
  fetched: () => Promise<Response>,
  kept: () => Promise<Response | undefined>,
  patienceMs: number,
): Promise<Response> {
  const waited = new Promise<undefined>((resolve) => setTimeout(resolve, patienceMs));
  const fresh = await Promise.race([fetched(), waited]).catch(() => undefined);
  // The browser itself follows a redirection.
  if (fresh?.ok === true || fresh?.type === 'opaqueredirect') return fresh;
  return (await kept()) ?? fresh ?? Response.error();
}
