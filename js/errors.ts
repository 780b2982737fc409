/** The one error type of the package, its codes, and its plain form for messages between page and worker. */

/** What went wrong, by who can mend it. The same list as Rust's `ErrorKind`; a test compares them. */
export type ErrorCode =
  | 'invalid_option'
  | 'invalid_model'
  | 'unsupported_model'
  | 'out_of_memory'
  | 'source_failed'
  | 'context_full'
  | 'misuse'
  | 'output_failed'
  | 'internal';

/** Every code, in Rust's order. */
export const ERROR_CODES = [
  'invalid_option',
  'invalid_model',
  'unsupported_model',
  'out_of_memory',
  'source_failed',
  'context_full',
  'misuse',
  'output_failed',
  'internal',
] as const satisfies readonly ErrorCode[];

/** Facts beside the message, for programs: `key`, `url`, `status`, `tensor`, `neededBytes`… */
export type ErrorDetails = Readonly<Record<string, string | number>>;

/** What crosses between page and worker: an error without its class. */
export interface PlainError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

/** A failure whose `code` programs match on and whose `message` names the cause and, where there is one, the remedy. */
export class SluiceError extends Error {
  override readonly name = 'SluiceError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** Is this one of the codes? */
export function isErrorCode(value: unknown): value is ErrorCode {
  return (ERROR_CODES as readonly unknown[]).includes(value);
}

/**
 * The plain form of anything thrown. What carries no code of ours is a bug or a trap: it becomes `internal`, and its own text,
 * which means nothing to a user, is kept out of the message.
 */
export function toPlainError(thrown: unknown): PlainError {
  if (thrown instanceof Error && 'code' in thrown && isErrorCode(thrown.code)) {
    const details = 'details' in thrown ? (thrown.details as ErrorDetails) : {};
    return { code: thrown.code, message: thrown.message, details };
  }
  return {
    code: 'internal',
    message: INTERNAL_MESSAGE,
    details: { thrown: thrown instanceof Error ? thrown.name : typeof thrown },
  };
}

/** The class again, on the other side. */
export function fromPlainError({ code, message, details }: PlainError): SluiceError {
  return new SluiceError(code, message, details);
}

/** What a user reads when the engine itself is at fault. */
export const INTERNAL_MESSAGE =
  "Sluice stopped because of a fault of its own; open the model again, and please report it with the error's details";
