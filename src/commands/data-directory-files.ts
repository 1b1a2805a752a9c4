import { readFile } from 'node:fs/promises';
import { StartError } from '../platform/errors.ts';
import { hasErrorCode, systemCodeOf } from '../platform/system/system-errors.ts';

/** Reads a file of the data directory; undefined if there is none. Throws StartError if it cannot be read. */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  return await readFile(path).catch((cause: unknown) => {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    throw asReadError(cause, path);
  });
}

/**
 * Turns the failure of a system call that reads the data directory into a StartError, and returns others as they are. `name`:
 * of what was read, if the failure has no path.
 */
export function asReadError(cause: unknown, name?: string): unknown {
  const code = systemCodeOf(cause);
  const path = pathOf(cause) ?? name;
  if (code === undefined || path === undefined) return cause;
  return new StartError(`${path} cannot be read (${code}): ${adviceFor(code)}.`, { cause });
}

function adviceFor(code: string): string {
  const is_forbidden = code === 'EACCES' || code === 'EPERM';
  return is_forbidden ? 'run this as the user of "muster serve"' : 'check the data directory and its disk';
}

/** Returns the path that a failed system call had. */
function pathOf(cause: unknown): string | undefined {
  return cause instanceof Error && 'path' in cause ? String(cause.path) : undefined;
}
