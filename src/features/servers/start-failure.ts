import { toServiceError } from '../../platform/database/failures.ts';

/** Returns why a server cannot run, for its developer: an error of the service in its own words, any other in general. */
export function describeFailure(cause: unknown): string {
  return toServiceError(cause)?.message ?? describeStartFailure(cause);
}

/**
 * Returns why a server cannot run, for its developer. The full error goes only to the service's log, because it may name
 * files of the machine.
 */
export function describeStartFailure(error: unknown): string {
  const reason = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
  return `the machine could not start the server${reason}: tell the operator of the service`;
}
