// The bare page's server with addresses that misbehave on command: one named fault per URL, on top of what Express and its
// `send` do right. A new way to misbehave is one entry of `faults`.
import path from 'node:path';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';

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
  /** The connection is torn after `bytes` of a body; with `times`, only so often. */
  torn: ({ response, sendFile, bytes, times = Infinity, state }) => {
    if ((state.torn ??= 0) < times) {
      let left = bytes;
      onWrite(response, (chunk, goOn) => {
        left -= chunk.length;
        if (left > 0) return goOn();
        state.torn += 1;
        response.destroy();
      });
    }
    sendFile();
  },
  /** The body stops after `bytes` and the connection stays open. */
  stalled: ({ response, sendFile, bytes }) => {
    let left = bytes;
    onWrite(response, (chunk, goOn) => {
      left -= chunk.length;
      if (left > 0) goOn();
    });
    sendFile();
  },
};

/**
 * Serves the bare page; `faulty(name, file, values)` gives the URL at which `file` is served with that fault. `requests` lists what was
 * asked of faulty URLs: `{ fault, range, status, bytes }`, the last two once the answer has ended.
 */
export async function serveFaulty(options = {}) {
  const places = [];
  const requests = [];
  const routes = (app) => {
    app.get('/faulty/:index/:name', (request, response, next) => {
      const { name, file, values, state } = places[Number(request.params.index)];
      const entry = { fault: name, range: request.headers.range ?? null, status: null, bytes: 0 };
      requests.push(entry);
      record(response, entry);
      const sendFile = (extra = {}) => response.sendFile(file, { dotfiles: 'allow', cacheControl: false, ...extra }, ended(next));
      faults[name]({ ...values, request, response, sendFile, state });
    });
  };
  const server = await serveBarePage({ ...options, routes });
  return {
    ...server,
    requests,
    faulty: (name, file, values = {}) => {
      if (!(name in faults)) throw new Error(`there is no fault ${name}`);
      places.push({ name, file: path.resolve(file), values, state: {} });
      return `${server.origin}/faulty/${places.length - 1}/${encodeURIComponent(path.basename(file))}`;
    },
  };
}

function record(response, entry) {
  const write = response.write.bind(response);
  response.write = (chunk, ...rest) => {
    entry.bytes += chunk.length;
    return write(chunk, ...rest);
  };
  response.once('close', () => (entry.status = response.statusCode));
}

// A torn connection is what was asked for; a request that cannot be answered (416) is for the server to say.
const ended = (next) => (error) => {
  if (error?.status !== undefined) next(error);
};

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
