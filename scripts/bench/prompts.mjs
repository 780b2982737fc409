// The prompts of the benchmark. Each turn's starts in its own way, so that nothing kept from an earlier one helps.

const SENTENCE = 'Once upon a time, in a small village by the sea, there lived an old fisherman who told stories. ';

/** About 12 tokens. */
export const shortPrompt = (turn) => `Tale ${turn + 2}: once upon a time, in a small village`;

/** About 30 tokens. */
export const visitPrompt = () => `${SENTENCE}Every evening the children of the village`;

/** About 550 tokens. */
export const longPrompt = (turn) => `Tale ${turn + 2}: ${SENTENCE.repeat(25)}`;
