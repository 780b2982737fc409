// The engine in a real browser from a terminal, with the options of the native command:
//   node scripts/browser-run.mjs --browser chromium|firefox|webkit --model FILE|URL -p TEXT|--ids 1,2,3 [-n N] … [--json]
//   node scripts/browser-run.mjs --browser … --model … --ids 1,2,3 --out FILE      (logits of every position, f32)
import { rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { browserNames, withBrowser } from './browsers/index.mjs';
import { runJob, storeFiles } from './browsers/engine-run.mjs';
import { serveBarePage } from './serve/bare-page.mjs';

const text = { type: 'string' };
const flag = { type: 'boolean', default: false };
// What sets a number of the sampler: the same names as the native command's, and in camelCase the options of `generate`.
const samplerNumbers = [
  'seed',
  'temperature',
  'top-k',
  'top-p',
  'min-p',
  'typical-p',
  'repeat-penalty',
  'frequency-penalty',
  'presence-penalty',
  'repeat-last-n',
  'dry-multiplier',
  'dry-base',
  'dry-allowed-length',
  'dry-last-n',
  'xtc-probability',
  'xtc-threshold',
  'mirostat',
  'mirostat-tau',
  'mirostat-eta',
];
const options = {
  browser: { type: 'string', default: 'chromium' },
  model: { type: 'string', multiple: true },
  source: { type: 'string', default: 'range' },
  build: { type: 'string', default: 'auto' },
  prompt: { ...text, short: 'p' },
  ids: text,
  n: { type: 'string', short: 'n', default: '64' },
  'parse-special': flag,
  'ignore-eog': flag,
  greedy: flag,
  ...Object.fromEntries(samplerNumbers.map((name) => [name, text])),
  'dry-breakers': { type: 'string', multiple: true },
  'logit-bias': { type: 'string', multiple: true },
  stop: { type: 'string', multiple: true },
  ctx: text,
  'n-batch': text,
  memory: text,
  force: flag,
  kv: text,
  precision: text,
  threads: text,
  out: text,
  json: flag,
  verbose: flag,
  deadline: { type: 'string', default: '600' },
};

/** Runs the model as the (parsed) arguments say; resolves to the page's findings. */
export async function browserRun(args) {
  const server = await serveBarePage({ out: args.out });
  try {
    const job = jobOf(args, server);
    if (args.out !== undefined) await rm(args.out, { force: true });
    const log = args.verbose ? (line) => console.error(`${args.browser}: ${line}`) : () => {};
    return await withBrowser(args.browser, { log, args: [] }, async (browser) => {
      const page = await browser.newPage();
      await page.goto(`${server.origin}/`);
      const deadlineMs = Number(args.deadline) * 1000;
      if (args.source === 'opfs') job.stored = await storeFiles(page, job.urls, deadlineMs);
      return runJob(page, job, deadlineMs);
    });
  } finally {
    await server.close();
  }
}

function jobOf(args, server) {
  const job = { open: openOptions(args) };
  const isUrl = (model) => /^https?:/.test(model);
  if (args.source === 'blob') {
    if (args.model.some(isUrl)) throw new UsageError('--source blob takes a file, not a URL');
    job.files = args.model;
  } else {
    job.urls = args.model.map((model) => (isUrl(model) ? model : server.addFile(model)));
  }
  const ids = args.ids === undefined ? null : args.ids.split(',').map(Number);
  if (args.out !== undefined) {
    if (ids === null) throw new UsageError('--out takes the tokens by --ids');
    const batch = number(args['n-batch']);
    job.open.allLogits = true;
    job.logits = { ids, ...(batch === undefined ? {} : { chunk: batch }) };
  } else {
    if (ids === null && args.prompt === undefined) throw new UsageError('give a prompt with -p TEXT or --ids 1,2,3');
    job.generate = { prompt: ids ?? args.prompt, options: generateOptions(args) };
  }
  return job;
}

function openOptions(args) {
  return given({
    build: args.build,
    memory: args.memory !== undefined && /^\d+$/.test(args.memory) ? Number(args.memory) : args.memory,
    context: number(args.ctx),
    batch: number(args['n-batch']),
    kvType: args.kv,
    precision: args.precision,
    threads: number(args.threads),
    force: args.force || undefined,
  });
}

function generateOptions(args) {
  return given({
    maxTokens: number(args.n),
    ...Object.fromEntries(samplerNumbers.map((name) => [camelCase(name), number(args[name])])),
    ...(args.greedy ? { temperature: 0 } : {}),
    dryBreakers: args['dry-breakers'],
    logitBias: args['logit-bias'] && Object.fromEntries(args['logit-bias'].map(bias)),
    stop: args.stop,
    ignoreEog: args['ignore-eog'] || undefined,
    parseSpecial: args['parse-special'] || undefined,
  });
}

function bias(given) {
  const [, id, x] = /^(\d+)=(-?[\d.]+)$/.exec(given) ?? [];
  // What goes to the page goes as JSON, which has no infinity.
  if (id === undefined) throw new UsageError('--logit-bias is ID=X with a finite X, such as 13=-1.5');
  return [id, Number(x)];
}

const camelCase = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
const number = (value) => (value === undefined ? undefined : Number(value));
const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

class UsageError extends Error {}

function checked() {
  const { values } = parseArgs({ options });
  const oneOf = (name, allowed) => {
    if (!allowed.includes(values[name])) throw new UsageError(`--${name} is one of ${allowed.join(', ')}`);
  };
  oneOf('browser', browserNames);
  oneOf('source', ['range', 'opfs', 'blob']);
  if (values.model === undefined) throw new UsageError('--model FILE|URL is missing');
  return values;
}

if (import.meta.filename === process.argv[1]) {
  try {
    const args = checked();
    const { error, ids, text: answer, finishReason, stats } = await browserRun(args);
    if (error !== undefined) {
      console.error(`error: ${error.message}${error.code === undefined ? '' : ` (${error.code})`}`);
      process.exitCode = 1;
    } else if (args.json) {
      console.log(JSON.stringify(args.out === undefined ? { ids, text: answer, finishReason, stats } : { stats }));
    } else if (args.out === undefined) {
      console.log(answer);
    }
  } catch (error) {
    console.error(`browser-run: ${error.message}`);
    process.exitCode = error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS') ? 2 : 1;
  }
}
