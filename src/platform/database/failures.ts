import { ServiceError } from '../errors.ts';

/** The server is gone, going or not there yet: SQLSTATE class 08, shutdown codes, postgres.js's and the socket's own. */
const UNAVAILABLE =
  /^(08...|57P0[123]|53300|25006|CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ENOTFOUND|EAI_AGAIN)$/;
/** The statement or a lock took too long. */
const BUSY = /^(57014|55P03|25P03)$/;
/** PostgreSQL asks for the transaction to be run again: serialisation failure, deadlock. */
const RETRY = /^(40001|40P01)$/;
const UNIQUE_VIOLATION = '23505';

/** What went wrong in the database as the caller should hear it; undefined when it is a fault of ours. */
export function toServiceError(error: unknown): ServiceError | undefined {
  for (const cause of causesOf(error)) {
    if (cause instanceof ServiceError) return cause;
    const code = codeOf(cause);
    if (UNAVAILABLE.test(code)) return new ServiceError('DATABASE_UNAVAILABLE', {}, { cause: error });
    if (BUSY.test(code) || RETRY.test(code)) return new ServiceError('DATABASE_BUSY', {}, { cause: error });
  }
  return undefined;
}

export function isWorthRetrying(error: unknown): boolean {
  return causesOf(error).some((cause) => RETRY.test(codeOf(cause)));
}

/** Whether a unique constraint refused the row; `constraint` is its name. */
export function isTaken(error: unknown, constraint: string): boolean {
  return causesOf(error).some(
    (cause) =>
      codeOf(cause) === UNIQUE_VIOLATION &&
      cause instanceof Error &&
      'constraint_name' in cause &&
      cause.constraint_name === constraint,
  );
}

function causesOf(error: unknown): unknown[] {
  return error instanceof Error && error.cause !== undefined ? [error, ...causesOf(error.cause)] : [error];
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
