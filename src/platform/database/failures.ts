import { ServiceError, StartError } from '../errors.ts';
import { storageFull } from '../system/disk-space.ts';

/**
 * The server is stopped, stopping, starting, or out of connections or disk: SQLSTATE classes 08 and 53, the codes of
 * shutdowns, of failed input or output and of read-only databases, and postgres.js's own codes.
 */
const UNAVAILABLE = /^(08...|53...|57P0[1-5]|25006|58030|CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT)$/;
/** Codes of a socket that could not connect, or lost its connection. */
const UNREACHABLE = /^E(CONN(REFUSED|RESET|ABORTED)|HOSTUNREACH|NETUNREACH|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|NOENT)$/;
/** The disk of PostgreSQL, or of this process, is full. */
const DISK_FULL = /^(53100|ENOSPC|EDQUOT)$/;
/** The statement or a lock took too long. */
const BUSY = /^(57014|55P03|25P03)$/;
/** The transaction should be repeated: serialization failure, deadlock. */
const RETRY = /^(40001|40P01)$/;
/** Descriptions of failures for operators. Each continues "the database …". */
const DESCRIPTIONS: [codes: RegExp, what: string][] = [
  [/^ECONNREFUSED$/, 'refuses connections'],
  [/^E(NOTFOUND|AI_AGAIN)$/, 'has a host name that cannot be resolved'],
  [/^ENOENT$/, 'has no socket at its path'],
  [/^57P03$/, 'is starting up or shutting down'],
  [/^57P0[125]$/, 'is shutting down'],
  [/^53300$/, 'has no connection left'],
  [/^53100$/, 'has no space left on its disk'],
  [/^25006$/, 'is read-only'],
  [/^(CONNECT_TIMEOUT|ETIMEDOUT|DATABASE_BUSY)$/, 'does not answer'],
  [/^55P03$/, 'has a table that something else uses, such as a backup'],
  [/^(57014|25P03|40001|40P01)$/, 'is too busy to answer in time'],
  [/^LOCK_LOST$/, 'closed the connection that this work needs'],
  [/^LOCK_HELD$/, 'is being started, migrated, backed up or restored by another process'],
];
const UNIQUE_VIOLATION = '23505';

/** Returns a failure of the database as the caller should see it; undefined for a fault of Muster. */
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

/** Returns whether a failure passes once the database is back. */
export const isUnavailable = (error: unknown): boolean => describeUnavailability(error) !== undefined;

/**
 * Describes, for operators, a failure that passes once the database is back. Undefined for any other failure, such as a
 * wrong password, a missing database, or a fault of Muster.
 */
export function describeUnavailability(error: unknown): string | undefined {
  const code = error instanceof StartError ? undefined : toServiceError(error)?.code;
  if (code !== 'DATABASE_UNAVAILABLE' && code !== 'DATABASE_BUSY' && code !== 'STORAGE_FULL') return undefined;
  const root_code = rootCodeOf(error);
  // The disk of this process is full, not the database's.
  if (code === 'STORAGE_FULL' && root_code !== '53100') return undefined;
  const [, what] = DESCRIPTIONS.find(([codes]) => codes.test(root_code)) ?? [undefined, 'cannot be reached'];
  return `the database ${what} (${root_code})`;
}

/** Returns whether a write failed because a disk is full. */
export function isDiskFull(error: unknown): boolean {
  return causesOf(error).some((cause) => DISK_FULL.test(codeOf(cause)));
}

/** Returns whether the user lacks a privilege (SQLSTATE 42501). */
export function isForbidden(error: unknown): boolean {
  return causesOf(error).some((cause) => codeOf(cause) === '42501');
}

/** Returns whether a statement waited for a lock longer than its transaction allows (SQLSTATE 55P03). */
export function isLocked(error: unknown): boolean {
  return causesOf(error).some((cause) => codeOf(cause) === '55P03');
}

export function isWorthRetrying(error: unknown): boolean {
  return causesOf(error).some((cause) => RETRY.test(codeOf(cause)));
}

/** Returns whether the unique constraint of this name refused the row. */
export function isTaken(error: unknown, constraint: string): boolean {
  return causesOf(error).some(
    (cause) =>
      codeOf(cause) === UNIQUE_VIOLATION &&
      cause instanceof Error &&
      'constraint_name' in cause &&
      cause.constraint_name === constraint,
  );
}

/** Returns whether a connection to the database failed. Failures of files have the same codes, but also a path. */
function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.test(codeOf(error)) && error instanceof Error && !('path' in error);
}

/** Returns the code of a failure's root cause; an empty text if it has none. */
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
