// The benchmark's cells as Markdown: a table of speed and one of streaming for each browser, and what is absent and why.

const MODELS = { smollm2: 'SmolLM2 135M Q4_1', gemma3: 'Gemma 3 270M Q4_K_M', 'llama-8b': '8B shape, 16 of 32 layers, Q4_K_M' };
const NONE = '–';

/** One row for each figure of a cell with contestants: part, what it is, key of the figure, whether less is better, unit. */
const ROWS = [
  ['decode', 'decode, short context', 'decode', rate],
  ['prefill', 'prefill of about 550 tokens', 'prefill', rate],
  ['prefill', 'decode at 550 tokens of context', 'longDecode', rate],
  ['visits', 'opened, first visit', 'firstOpen', seconds],
  ['visits', 'first token, first visit', 'firstToken', seconds],
  ['visits', 'opened, later visit', 'laterOpen', seconds],
  ['visits', 'first token, later visit', 'laterToken', seconds],
  ['memory', 'peak over a blank page', 'peak', bytes],
];

/** All tables. */
export function tables(cells) {
  const browsers = [...new Set(cells.map(({ browser }) => browser))];
  return browsers.map((browser) => ofBrowser(cells.filter((cell) => cell.browser === browser))).join('\n\n');
}

function ofBrowser(cells) {
  const dates = [...new Set(cells.map(({ date }) => date))].sort();
  const { machine, versions } = cells[0];
  const native = cells.map(({ contestants }) => contestants?.native?.opened?.version).find((version) => version !== undefined);
  const head = [
    `${versions.browser}, wllama ${versions.wllama}${native ? `, llama-cpp-python ${native}` : ''}; ${machine}; ${dates.join(', ')}; `,
    '`npm run bench`. Medians; quotients are the middle one of those of each turn.',
  ].join('');
  return [head, speedTable(cells), streamingTable(cells), budgetLines(cells), absences(cells)].filter(Boolean).join('\n\n');
}

function speedTable(cells) {
  const rows = ROWS.flatMap(([part, what, key, form]) =>
    cells.filter((cell) => cell.part === part && cell.contestants !== undefined).map((cell) => speedRow(cell, what, key, form)),
  );
  if (rows.length === 0) return '';
  const head = ['what', 'model', 'threads', 'Sluice', 'wllama', 'native llama.cpp', 'Sluice : wllama', 'Sluice : native'];
  return table(head, rows);
}

function speedRow({ contestants, ratios, model, threads, budget }, what, key, form) {
  const figure = (name) => (contestants[name]?.median === undefined ? NONE : form(contestants[name].median[key]));
  const quotient = (name) => {
    const known = ratios?.[name]?.[key];
    if (known !== undefined) return `${known.toFixed(2)} ×`;
    const [ours, theirs] = [contestants.sluice?.median?.[key], contestants[name]?.median?.[key]];
    return ours === undefined || theirs === undefined ? NONE : `${(ours / theirs).toFixed(2)} ×`;
  };
  let ours = figure('sluice');
  if (key === 'longDecode' && contestants.sluice?.median !== undefined)
    ours += ` (${percent(contestants.sluice.median.kept)} of short)`;
  if (contestants['sluice-small']?.median !== undefined) ours += `; at ${budget}: ${figure('sluice-small')}`;
  return [what, MODELS[model], threads, ours, figure('wllama'), figure('native'), quotient('wllama'), quotient('native')];
}

function streamingTable(cells) {
  const rows = cells
    .filter(({ part, median }) => part === 'streaming' && median !== undefined)
    .map(({ model, threads, budget, streamedBytes, median: { C, R, T, ofResident, ofBound, residentPrefill, prefill } }) => [
      `${MODELS[model]} at ${budget}`,
      threads,
      bytes(streamedBytes),
      `${C.toFixed(2)} ms`,
      `${R.toFixed(2)} ms`,
      `${T.toFixed(2)} ms`,
      ofResident.toFixed(2),
      ofBound.toFixed(2),
      prefill === undefined ? NONE : `${prefill.toFixed(0)} (${residentPrefill.toFixed(0)}) tok/s`,
    ]);
  if (rows.length === 0) return '';
  const head = [
    'streaming from OPFS',
    'threads',
    'read a token',
    'C',
    'R',
    'T',
    'C : T',
    '(C + R) / threads : T',
    'prefill (resident)',
  ];
  const words =
    'C is the time of a token with all weights resident and one thread, R that of a bare loop with the same reads, T that of a token under the budget.';
  return `${table(head, rows)}\n\n${words}`;
}

function budgetLines(cells) {
  const lines = cells
    .filter(({ part, points }) => part === 'budgets' && points !== undefined)
    .map(({ model, threads, points, rises }) => {
      const speeds = points.map(({ memory, tokensPerSecond }) => `${memory / 1e6} MB ${tokensPerSecond.toFixed(1)}`);
      const verdict = rises ? '' : ' (it does not rise at every step)';
      return `- ${MODELS[model]}, ${threads} thread${threads === 1 ? '' : 's'}: ${speeds.join(', ')}${verdict}`;
    });
  return lines.length === 0 ? '' : `Decode, tokens per second, by budget ([plot](budget-and-speed.svg)):\n\n${lines.join('\n')}`;
}

function absences(cells) {
  const reasons = cells.flatMap(({ part, model, threads, absent, contestants = {} }) => {
    const place = `${part}, ${MODELS[model]}, ${threads} thread${threads === 1 ? '' : 's'}`;
    const all = Object.entries(contestants).filter(([, one]) => one.absent !== undefined);
    return [...(absent ? [`${place}: ${absent}`] : []), ...all.map(([name, one]) => `${place}: ${name}: ${one.absent}`)];
  });
  return reasons.length === 0 ? '' : `Absent:\n\n${reasons.map((reason) => `- ${reason}`).join('\n')}`;
}

const table = (head, rows) => [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

function rate(value) {
  return `${value.toFixed(1)} tok/s`;
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(2)} s`;
}

function bytes(value) {
  return `${(value / 1e6).toFixed(1)} MB`;
}

const percent = (share) => `${(100 * share).toFixed(0)} %`;
