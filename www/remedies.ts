/** What a visitor can do about a failure, in one sentence of this page beside the package's own message. */

import type { ErrorCode, ErrorDetails } from 'sluice-llm';

/** The remedy; empty where the message itself says all there is. */
export function remedy(code: ErrorCode, details: ErrorDetails): string {
  switch (code) {
    case 'out_of_memory':
      return 'Give it more memory with the dial, a shorter context, or choose a smaller model.';
    case 'invalid_model':
      return 'Choose another file: this one is damaged or is no GGUF model.';
    case 'unsupported_model':
      return 'Choose another model: the ones above run.';
    case 'source_failed':
      return details['reason'] === 'full'
        ? 'Delete stored models, or pick the file from your disk: then nothing is stored.'
        : 'Check the address and the connection, then try again: what has arrived is kept.';
    case 'context_full':
      return 'Begin a new chat, or open the model with a longer context.';
    case 'invalid_option':
      return 'Correct the setting that is named.';
    case 'misuse':
      return 'Close other tabs that use this model, then try again.';
    case 'output_failed':
      return 'Try again.';
    case 'internal':
      return 'This is a fault of Sluice. Open the model again: nothing else is lost.';
    default:
      return code satisfies never;
  }
}
