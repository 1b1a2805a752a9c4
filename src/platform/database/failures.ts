import { storageFull } from '../disk-space.ts';
import { ServiceError } from '../errors.ts';

/**
 * The server is gone, going, not there yet, or out of what it needs (connections, disk): SQLSTATE classes 08 and 53, its
 * shutdown codes, failed input or output; postgres.js's own codes.
 */
const UNAVAILABLE = /^(08...|53...|57P0[1-5]|25006|58030|CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT)$/;
/** The way to it is cut, says the socket. */
const UNREACHABLE = /^E(CONN(REFUSED|RESET|ABORTED)|HOSTUNREACH|NETUNREACH|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|NOENT)$/;
/** No space is left on the disk of PostgreSQL, or on ours. */
const DISK_FULL = /^(53100|ENOSPC|EDQUOT)$/;
/** The statement or a lock took too long. */
const BUSY = /^(57014|55P03|25P03)$/;
/** PostgreSQL asks for the transaction to be run again: serialisation failure, deadlock. */
const RETRY = /^(40001|40P01)$/;
const UNIQUE_VIOLATION = '23505';
const CHECK_VIOLATION = '23514';

/** What went wrong in the database as the caller should hear it; undefined when it is a fault of ours. */
export function toServiceError(error: unknown): ServiceError | undefined {
  for (const cause of causesOf(error)) {
    if (cause instanceof ServiceError) return cause;
    const code = codeOf(cause);
    if (DISK_FULL.test(code)) return storageFull(error);
    if (UNAVAILABLE.test(code) || isUnreachable(cause))
      return new ServiceError('DATABASE_UNAVAILABLE', {}, { cause: error });
    if (BUSY.test(code) || RETRY.test(code)) return new ServiceError('DATABASE_BUSY', {}, { cause: error });
  }
  return undefined;
}

/** Whether a write was refused because no space is left on a disk. */
export function isDiskFull(error: unknown): boolean {
  return causesOf(error).some((cause) => DISK_FULL.test(codeOf(cause)));
}

/** Whether PostgreSQL refused because the user lacks a right (SQLSTATE 42501). */
export function isForbidden(error: unknown): boolean {
  return causesOf(error).some((cause) => codeOf(cause) === '42501');
}

export function isWorthRetrying(error: unknown): boolean {
  return causesOf(error).some((cause) => RETRY.test(codeOf(cause)));
}

/** Whether a unique constraint refused the row; `constraint` is its name. */
export function isTaken(error: unknown, constraint: string): boolean {
  return violates(error, UNIQUE_VIOLATION, constraint);
}

/** Whether a check of a table refused the row; `constraint` is its name. */
export function isRefusedBy(error: unknown, constraint: string): boolean {
  return violates(error, CHECK_VIOLATION, constraint);
}

function violates(error: unknown, code: string, constraint: string): boolean {
  return causesOf(error).some(
    (cause) =>
      codeOf(cause) === code &&
      cause instanceof Error &&
      'constraint_name' in cause &&
      cause.constraint_name === constraint,
  );
}

/** Failures of files and of requests of our own have the same codes, and a path. */
function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.test(codeOf(error)) && error instanceof Error && !('path' in error);
}

function causesOf(error: unknown): unknown[] {
  return error instanceof Error && error.cause !== undefined ? [error, ...causesOf(error.cause)] : [error];
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
