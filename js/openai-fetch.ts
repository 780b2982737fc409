/** OpenAI's routes in the page: a `fetch` that answers requests out of an opened model, as the official SDK expects them. */

import { SluiceError } from './errors.js';
import type { RequestOptions } from './openai-wire.js';

/** The calls behind the routes. */
export interface RouteCalls {
  chat: { completions: { create: Create } };
  completions: { create: Create };
  embeddings: { create: Create };
}

type Create = (params: object, options: RequestOptions) => Promise<object>;

/** A `fetch` over `calls`; `model` is what `/models` lists. */
export function serve(
  calls: RouteCalls,
  model: string,
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  return async (input, init) => {
    const request = new Request(input instanceof Request ? input : new URL(input, 'http://sluice.invalid'), init);
    const { pathname } = new URL(request.url);
    request.signal.throwIfAborted();
    try {
      if (/\/models$/.test(pathname)) return Response.json({ object: 'list', data: [modelCard(model)] });
      if (pathname.endsWith(`/models/${encodeURIComponent(model)}`)) return Response.json(modelCard(model));
      const create = routeOf(pathname, calls);
      if (create === undefined) return failure(404, `nothing is served at ${pathname}`, null, 'not_found');
      if (request.method !== 'POST') return failure(405, `${pathname} takes POST`, null, 'method_not_allowed');
      // A reader who goes away, or the request's own signal, frees the engine at once.
      const controller = new AbortController();
      request.signal.addEventListener('abort', () => controller.abort(request.signal.reason), { once: true });
      const found = await create(await bodyOf(request), { signal: controller.signal });
      if (!(Symbol.asyncIterator in found)) return Response.json(found);
      return await stream(found as AsyncGenerator<object>, controller); // only streams iterate
    } catch (error) {
      if (error instanceof SluiceError) return refusal(error);
      throw error;
    }
  };
}

function routeOf(pathname: string, calls: RouteCalls): Create | undefined {
  if (pathname.endsWith('/chat/completions')) return calls.chat.completions.create;
  if (pathname.endsWith('/completions')) return calls.completions.create;
  if (pathname.endsWith('/embeddings')) return calls.embeddings.create;
  return undefined;
}

async function bodyOf(request: Request): Promise<object> {
  const text = await request.text();
  try {
    return JSON.parse(text) as object; // the calls check it
  } catch {
    throw new SluiceError('invalid_option', 'the body is not JSON', { key: 'body' });
  }
}

/**
 * Server-sent events. The first piece is waited for, so that a refusal has its status. The others are taken as they come, read or not, as a
 * server's are: a body that nobody reads keeps the engine from nobody.
 */
async function stream(pieces: AsyncGenerator<object>, request: AbortController): Promise<Response> {
  const encoder = new TextEncoder();
  const event = (data: string): Uint8Array => encoder.encode(`data: ${data}\n\n`);
  const waiting: IteratorResult<object>[] = [];
  // The first piece of a chat says who speaks, before anything is asked of the engine; the second is the engine's.
  for (let i = 0; i < 2; i++) {
    const next = await pieces.next();
    waiting.push(next);
    if (next.done === true) break;
  }
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      try {
        const next = waiting.shift() ?? (await pieces.next());
        controller.enqueue(event(next.done === true ? '[DONE]' : JSON.stringify(next.value)));
        if (next.done === true) controller.close();
      } catch (error) {
        if (request.signal.aborted || !(error instanceof SluiceError)) return controller.error(error);
        controller.enqueue(event(JSON.stringify(bodyOfError(error.message, String(error.details['key'] ?? ''), error.code))));
        controller.close();
      }
    },
    cancel(reason) {
      request.abort(reason);
    },
  };
  const body = new ReadableStream<Uint8Array>(source, { highWaterMark: Infinity });
  return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
}

function refusal(error: SluiceError): Response {
  const key = error.details['key'];
  const isCallers = error.code === 'invalid_option' || error.code === 'context_full' || error.code === 'misuse';
  const code = error.code === 'context_full' ? 'context_length_exceeded' : error.code;
  return failure(isCallers ? 400 : 500, error.message, typeof key === 'string' ? key : null, code);
}

function failure(status: number, message: string, param: string | null, code: string): Response {
  // Asked again it would say the same.
  return Response.json(bodyOfError(message, param, code, status), { status, headers: { 'x-should-retry': 'false' } });
}

function bodyOfError(message: string, param: string | null, code: string, status = 500): object {
  return { error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param, code } };
}

function modelCard(id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'sluice' };
}
