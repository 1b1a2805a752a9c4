import { toServiceError } from '../../platform/database/failures.ts';
import { isMissingObject } from '../../platform/objects/objects.ts';

/** Returns why a server cannot run, for its developer: an error of the service in its own words, any other in general. */
export function describeStartFailure(cause: unknown): string {
  if (isMissingObject(cause))
    return 'files of its build are missing in the storage of the service: upload the build again, and tell the operator of the service';
  return toServiceError(cause)?.message ?? describeUnexpectedFailure(cause);
}

/** Returns a sentence for a failure whose details are for the operator only, because they may name files of the machine. */
export function describeUnexpectedFailure(cause: unknown): string {
  const reason = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
  return `the machine could not start the server${reason}: tell the operator of the service`;
}
