import { storageFull } from '../disk-space.ts';
import { ServiceError, StartError } from '../errors.ts';

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
/** How each failure looks to an operator. */
const ABSENCES: [codes: RegExp, what: string][] = [
  [/^ECONNREFUSED$/, 'refuses connections'],
  [/^E(NOTFOUND|AI_AGAIN)$/, 'has a host name that cannot be resolved'],
  [/^ENOENT$/, 'has no socket where DATABASE_URL says'],
  [/^57P03$/, 'is starting up or shutting down'],
  [/^57P0[125]$/, 'is shutting down'],
  [/^53300$/, 'has no connection left'],
  [/^53100$/, 'has no space left on its disk'],
  [/^25006$/, 'is read-only'],
  [/^(CONNECT_TIMEOUT|ETIMEDOUT|DATABASE_BUSY)$/, 'does not answer'],
  [/^(57014|55P03|25P03|40001|40P01)$/, 'is too busy to answer in time'],
];
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

/**
 * Describes, for operators, a failure that goes away by itself once the database is there again. Undefined for any other:
 * a wrong password, a database that does not exist, a fault of ours.
 */
export function describeAbsence(error: unknown): string | undefined {
  const code = error instanceof StartError ? undefined : toServiceError(error)?.code;
  if (code !== 'DATABASE_UNAVAILABLE' && code !== 'DATABASE_BUSY' && code !== 'STORAGE_FULL') return undefined;
  const root_code = rootCodeOf(error);
  // Our own disk is full, which has nothing to do with the database.
  if (code === 'STORAGE_FULL' && root_code !== '53100') return undefined;
  const [, what] = ABSENCES.find(([codes]) => codes.test(root_code)) ?? [undefined, 'cannot be reached'];
  return `the database ${what} (${root_code})`;
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

/** The code of what a failure comes down to; empty when it has none. */
export function rootCodeOf(error: unknown): string {
  return codeOf(causesOf(error).at(-1));
}

export function rootMessageOf(error: unknown): string {
  const root = causesOf(error).at(-1);
  return root instanceof Error ? root.message : String(root);
}

function causesOf(error: unknown): unknown[] {
  return error instanceof Error && error.cause !== undefined ? [error, ...causesOf(error.cause)] : [error];
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
