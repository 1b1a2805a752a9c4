import { CATALOGUE, type CatalogueEntry, type ErrorCode, type ErrorParameters } from './error-catalogue.ts';

export type { ErrorCode } from './error-catalogue.ts';

interface ErrorDetails {
  /** Details for programs; sent as `metadata`. */
  metadata?: unknown;
  /** The cause, for the log only. */
  cause?: unknown;
  /** Sent as the header Retry-After, in whole seconds. */
  retry_after_ms?: number;
}

/** A failure that is reported to the caller, by a code of the catalogue. */
export class ServiceError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: ErrorCode;
  readonly status: CatalogueEntry['status'];
  readonly metadata: unknown;
  readonly retry_after_ms: number | undefined;

  constructor(code: Code, parameters: ErrorParameters<Code>, details: ErrorDetails = {}) {
    const entry = CATALOGUE[code];
    // Creating a stack costs more than the refusal itself; the cause has its own stack.
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

/** Returns the code's anchor on the documentation page, such as `matchmaker-lobby-full`. */
export function documentationAnchor(code: ErrorCode): string {
  return code.toLowerCase().replaceAll('_', '-');
}

/** Returns whether the service is at fault for an error and its cause belongs in the log. */
export function isFault({ code, status, cause }: ServiceError): boolean {
  return code === 'ERROR' || (status >= 500 && cause !== undefined);
}

/** The service cannot start. The message tells the operator in one sentence what is wrong and what to do. */
export class StartError extends Error {}

/** Throws if an invariant of the code does not hold: the caller gets a 500, the log gets the message. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${message}`);
}
