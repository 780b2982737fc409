// The bare page's server with addresses that misbehave on command: one named fault per URL, on top of what Express and its
// `send` do right. A new way to misbehave is one entry of `faults.mjs`.
import path from 'node:path';
import { serveBarePage } from '../../scripts/serve/bare-page.mjs';
import { faults } from './faults.mjs';

/**
 * Serves the bare page; `faulty(name, file, values)` gives the URL at which `file` is served with that fault. `requests` lists what was
 * asked of faulty URLs: `{ fault, method, range, status, bytes, startedAt, endedAt }`: status and end once the answer has ended.
 */
export async function serveFaulty(options = {}) {
  const places = [];
  const requests = [];
  const routes = (app) => {
    app.get('/faulty/:index/:name', (request, response, next) => {
      const { name, file, values, state } = places[Number(request.params.index)];
      const { method, headers } = request;
      const entry = { fault: name, method, range: headers.range ?? null, status: null, bytes: 0, startedAt: Date.now() };
      requests.push(entry);
      record(response, entry);
      const sendFile = (extra = {}) => response.sendFile(file, { dotfiles: 'allow', cacheControl: false, ...extra }, ended(next));
      faults[name]({ ...values, file, request, response, sendFile, state });
    });
    app.options('/faulty/:index/:name', (request, response) => {
      response.set({ 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' }).status(204).end();
    });
  };
  const server = await serveBarePage({ ...options, routes });
  return {
    ...server,
    requests,
    faulty: (name, file, values = {}) => {
      places.push(place(name, file, values));
      return `${server.origin}/faulty/${places.length - 1}/${encodeURIComponent(path.basename(file))}`;
    },
    /** From now on `url` has another fault. */
    change: (url, name, values = {}) => {
      const index = Number(new URL(url).pathname.split('/')[2]);
      places[index] = place(name, places[index].file, values);
    },
  };
}

function place(name, file, values) {
  if (!(name in faults)) throw new Error(`there is no fault ${name}`);
  return { name, file: path.resolve(file), values, state: {} };
}

function record(response, entry) {
  const write = response.write.bind(response);
  const end = response.end.bind(response);
  response.write = (chunk, ...rest) => {
    entry.bytes += chunk.length;
    return write(chunk, ...rest);
  };
  response.end = (...rest) => {
    if (Buffer.isBuffer(rest[0])) entry.bytes += rest[0].length;
    return end(...rest);
  };
  response.once('close', () => Object.assign(entry, { status: response.statusCode, endedAt: Date.now() }));
}

// A torn connection is what was asked for; a request that cannot be answered (416) is for the server to say.
const ended = (next) => (error) => {
  if (error?.status !== undefined) next(error);
};
