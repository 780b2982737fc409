/** What OpenAI's wire format looks like, as far as it is served here. A test holds these types against those of the `openai` package. */

/** `chat.completions`, whole. */
export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: {
    index: number;
    message: { role: 'assistant'; content: string; refusal: null };
    logprobs: { content: TokenEntry[]; refusal: null } | null;
    finish_reason: WireReason;
  }[];
  usage: Usage;
}

/** `chat.completions`, a piece. */
export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  /** Empty in the last piece, when usage was asked for. */
  choices: {
    index: number;
    delta: { role?: 'assistant'; content?: string };
    logprobs: { content: TokenEntry[]; refusal: null } | null;
    finish_reason: WireReason | null;
  }[];
  usage?: Usage | null;
}

/** `completions`, whole or a piece. */
export interface Completion {
  id: string;
  object: 'text_completion';
  created: number;
  model: string;
  choices: CompletionChoice[];
  usage?: Usage;
}

/** One text of `completions`; `finish_reason` is empty in all pieces but the last. */
export interface CompletionChoice {
  index: number;
  text: string;
  logprobs: CompletionLogprobs | null;
  finish_reason: WireReason;
}

/** Log-probabilities of `completions`: lists with a value a token. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  /** The likeliest tokens in each place, and the one that was taken. */
  top_logprobs: Record<string, number>[];
  /** Where each token begins in the text, in characters (code points). */
  text_offset: number[];
}

/** `embeddings`. */
export interface EmbeddingResponse<V = number[]> {
  object: 'list';
  model: string;
  data: { object: 'embedding'; index: number; embedding: V }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

/** A token with its log-probability and the likeliest ones in its place. */
export interface TokenEntry extends TokenFact {
  top_logprobs: TokenFact[];
}

/** A token's text, its bytes, and the logarithm of its probability. */
export interface TokenFact {
  token: string;
  bytes: number[] | null;
  logprob: number;
}

/** Tokens that were counted. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

/** Why an answer ended. */
export type WireReason = 'stop' | 'length';

/** What a call takes beside its parameters: a signal. What else the SDK knows is accepted and does nothing, as nothing goes over a network. */
export interface RequestOptions {
  signal?: AbortSignal | null | undefined;
  fetchOptions?: unknown;
  headers?: unknown;
  idempotencyKey?: unknown;
  maxRetries?: unknown;
  query?: unknown;
}
