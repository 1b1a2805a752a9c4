import { CATALOGUE, type CatalogueEntry, type ErrorCode, type ErrorParameters } from './error-catalogue.ts';

export type { ErrorCode } from './error-catalogue.ts';

interface ErrorDetails {
  /** Anything of use to a program; sent as `metadata`. */
  metadata?: unknown;
  /** What really happened. Goes to the log, never to the caller. */
  cause?: unknown;
  /** Sent as the header Retry-After, in whole seconds. */
  retry_after_ms?: number;
}

/** A failure that the caller is told about, by a code of the catalogue. */
export class ServiceError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: ErrorCode;
  readonly status: CatalogueEntry['status'];
  readonly metadata: unknown;
  readonly retry_after_ms: number | undefined;

  constructor(code: Code, parameters: ErrorParameters<Code>, details: ErrorDetails = {}) {
    const entry = CATALOGUE[code];
    // Where it was thrown is nobody's question, and to find that out costs more than a refusal; a cause keeps its own.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(fillIn(entry.message, parameters), { cause: details.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.status = entry.status;
    this.metadata = details.metadata;
    this.retry_after_ms = details.retry_after_ms ?? (entry.status === 503 ? 1_000 : undefined);
  }
}

function fillIn(message: string, parameters: Record<string, string | number>): string {
  return message.replace(/\{([a-z_]+)\}/g, (_, name: string) => String(parameters[name]));
}

/** The code's anchor on the documentation page, as `matchmaker-lobby-full`. */
export function documentationAnchor(code: ErrorCode): string {
  return code.toLowerCase().replaceAll('_', '-');
}

/** The service cannot start. The message is one sentence for the person who starts it: what is wrong, and what to do. */
export class StartError extends Error {}

/** A promise of our own code that did not hold: the caller gets a 500, the log the message. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`broken promise: ${message}`);
}
