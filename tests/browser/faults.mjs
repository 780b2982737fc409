// Ways for a server to misbehave, on top of what Express and its `send` do right.
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

/**
 * Name → how a request is answered. `sendFile(options)` answers as a sound server would (options of `send`), `response` is Express's;
 * further values are the fault's own, given to `faulty`.
 */
export const faults = {
  /** No fault: for seeing what is asked for. */
  sound: ({ sendFile }) => sendFile(),
  'not-found': ({ response }) => response.status(404).type('html').send('<h1>Not Found</h1>'),
  forbidden: ({ response }) => response.status(403).type('html').send('<h1>Forbidden</h1>'),
  /** A page instead of the file, with status 200: a login page, or the fallback of a single-page application. */
  'html-page': ({ response }) => response.type('html').send(`<!doctype html><title>Sign in</title>${' '.repeat(4096)}`),
  /** The file ends after `bytes`. */
  'cut-off': ({ sendFile, bytes }) => sendFile({ end: bytes - 1 }),
  /** Ranges are ignored: always 200 and the whole file. */
  'no-ranges': ({ sendFile }) => sendFile({ acceptRanges: false }),
  /** At most `bytesPerSecond` on each connection. */
  slow: ({ response, sendFile, bytesPerSecond }) => {
    onWrite(response, (chunk, goOn) => setTimeout(goOn, (chunk.length / bytesPerSecond) * 1000));
    sendFile();
  },
  /** Ranges are ignored, no length is said, and `more` bytes follow on the file's last one. */
  longer: (given) => {
    given.response.status(200).write(readFileSync(given.file));
    given.response.end(Buffer.alloc(given.more, 7));
  },
  /**
   * The connection is torn after `bytes` of a body; with `times`, only so often. What the browser has not read by then is lost: with
   * `lingerMs` it has that long.
   */
  torn: ({ response, sendFile, bytes, times = Infinity, lingerMs, state }) => {
    if ((state.torn ??= 0) < times) {
      let left = bytes;
      onWrite(response, (chunk, goOn) => {
        left -= chunk.length;
        if (left > 0) return goOn();
        state.torn += 1;
        if (lingerMs === undefined) response.destroy();
        else setTimeout(() => response.destroy(), lingerMs);
      });
    }
    sendFile();
  },
  /** The body stops after `bytes` and the connection stays open. */
  stalled: ({ response, sendFile, bytes, times = Infinity, state }) => {
    if ((state.stalled = (state.stalled ?? 0) + 1) > times) return sendFile();
    let left = bytes;
    onWrite(response, (chunk, goOn) => {
      left -= chunk.length;
      if (left > 0) goOn();
    });
    sendFile();
  },
  /** No answer ever. */
  mute: () => undefined,
  /** After `bytes` of a longer body, all of which arrive, the connection is closed in good order. Other bodies end as ever: another may follow. */
  ended: ({ response, sendFile, bytes }) => {
    let left = bytes;
    let missing; // known with the first piece
    onWrite(response, (chunk, goOn) => {
      left -= chunk.length;
      missing = (missing ?? Number(response.getHeader('content-length'))) - chunk.length;
      if (left > 0 || missing === 0) goOn();
      else setTimeout(() => response.socket?.end(), 200);
    });
    sendFile();
  },
  /** At most `bytesPerSecond` over all connections. */
  throttled: ({ response, sendFile, bytesPerSecond, state }) => {
    onWrite(response, (chunk, goOn) => {
      const now = performance.now();
      state.free = Math.max(state.free ?? now, now) + (chunk.length / bytesPerSecond) * 1000;
      setTimeout(goOn, state.free - now);
    });
    sendFile();
  },
  /** `status`, from the request behind the first `after` on, `times` times. */
  status: ({ response, sendFile, state, status, headers = {}, ...when }) =>
    strikes(state, when) ? response.status(status).set(headers).end() : sendFile(),
  /** Leads to the file over `hops` redirects; without an end if `loop`. */
  redirect: ({ request, response, sendFile, hops = 1, loop = false }) => {
    const hop = Number(request.query.hop ?? 0);
    if (hop < hops || loop) response.redirect(302, `${request.path}?hop=${hop + 1}`);
    else sendFile();
  },
  /** Leads to a link that works `times` times and is refused with 403 afterwards; the address then gives a new one. */
  expiring: ({ request, response, sendFile, state, times }) => {
    const { link } = request.query;
    if (link === undefined) return response.redirect(302, `${request.path}?link=${state.current ?? 0}`);
    state.links ??= [];
    state.links[link] = (state.links[link] ?? 0) + 1;
    if (state.links[link] <= times) return sendFile();
    state.current = Number(link) + 1;
    response.status(403).end();
  },
  /** Refuses what asks without the key. */
  'needs-key': ({ request, response, sendFile, key }) =>
    request.headers['x-key'] === key ? sendFile() : response.status(401).end(),
  /** Every range is refused with 416; the whole file is given. */
  'no-such-range': ({ request, response, sendFile }) => (request.headers.range ? response.status(416).end() : sendFile()),
  /** The whole file, compressed. */
  'gzip-whole': (given) => {
    given.response
      .status(200)
      .set({ 'content-encoding': 'gzip' })
      .end(gzipSync(readFileSync(given.file)));
  },
  /** A part, compressed. */
  'gzip-part': (given) => {
    const { body, contentRange } = part(given);
    given.response.status(206).set({ 'content-encoding': 'gzip', 'content-range': contentRange }).end(gzipSync(body));
  },
  /** At most `most` bytes of what was asked; says so unless `silent`. */
  stingy: (given) => {
    const { size, first, body } = part(given);
    if (body.length === 0) return given.response.status(416).end();
    const some = body.subarray(0, given.most);
    const range = { 'content-range': `bytes ${first}-${first + some.length - 1}/${size}` };
    given.response
      .status(206)
      .set(given.silent ? {} : range)
      .end(some);
  },
  /** More than was asked. */
  generous: (given) => {
    const { first, last } = part(given);
    given.response.status(206).end(bytesOf(given.file, first, last + 1001));
  },
  /** Other bytes than were asked. */
  shifted: (given) => {
    const { size, first, body } = part(given);
    const range = `bytes ${first + 100}-${first + 99 + body.length}/${size}`;
    given.response
      .status(206)
      .set({ 'content-range': range })
      .end(bytesOf(given.file, first + 100, first + 100 + body.length));
  },
  /** The right part without `Content-Range`, and without a length if `chunked`. */
  terse: (given) => {
    const { body } = part(given);
    if (body.length === 0) return given.response.status(416).end();
    given.response.status(206);
    if (given.chunked) given.response.write(body.subarray(0, 1000));
    given.response.end(given.chunked ? body.subarray(1000) : body);
  },
  /** A part with nothing in it, from the request behind the first `after` on, `times` times. */
  hollow: (given) => {
    if (!strikes(given.state, given)) return given.sendFile();
    given.response
      .status(206)
      .set({ 'content-range': part(given).contentRange, 'content-length': 0 })
      .end();
  },
  /** A web page as a part. */
  'html-part': (given) => {
    const { contentRange, body } = part(given);
    given.response.status(206).set({ 'content-range': contentRange }).type('html').end(Buffer.alloc(body.length, '<p>'));
  },
  /** Headers from a list, the next with each request; the last stays. */
  headers: ({ response, sendFile, state, list }) => {
    state.next = (state.next ?? -1) + 1;
    response.set(list[Math.min(state.next, list.length - 1)]);
    sendFile(list.some((headers) => 'etag' in headers) ? {} : { etag: false });
  },
  /** From the request behind the first `after` on it is another file. */
  replaced: ({ response, other, state, after, sendFile }) => {
    if (!strikes(state, { after })) return sendFile();
    response.sendFile(other, { dotfiles: 'allow', cacheControl: false }, () => undefined);
  },
  /** Ranges work for the first `after` requests, then the whole file comes each time. */
  forgetful: ({ sendFile, state, after }) => sendFile({ acceptRanges: !strikes(state, { after }) }),
  /** Readable by other origins, with no header exposed. */
  cors: ({ response, sendFile }) => {
    response.set({ 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' });
    sendFile();
  },
};

/** The bytes that a request asks for, and how a sound server describes them. */
function part({ request, file }) {
  const { size } = statSync(file);
  const [, first = 0, last = size - 1] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')?.map(Number) ?? [];
  const body = bytesOf(file, first, last + 1);
  return { size, first, last, body, contentRange: `bytes ${first}-${first + body.length - 1}/${size}` };
}

/** Bytes `first` to `end` of a file, as far as it has them. */
function bytesOf(file, first, end) {
  const handle = openSync(file);
  try {
    const bytes = Buffer.alloc(end - first);
    return bytes.subarray(0, readSync(handle, bytes, 0, bytes.length, first));
  } finally {
    closeSync(handle);
  }
}

/** True from the request behind the first `after` on, `times` times. */
function strikes(state, { after = 1, times = Infinity }) {
  state.asked = (state.asked ?? 0) + 1;
  return state.asked > after && state.asked <= after + times;
}

// A body's pieces go out one at a time: the next waits until `step(chunk, goOn)` has called `goOn`.
function onWrite(response, step) {
  const write = response.write.bind(response);
  const emit = response.emit.bind(response);
  response.emit = (event, ...values) => event !== 'drain' && emit(event, ...values); // the socket's own say counts no more
  response.write = (chunk, ...rest) => {
    write(chunk, ...rest);
    step(chunk, () => setImmediate(emit, 'drain')); // the writer listens only once this call has returned
    return false;
  };
}
