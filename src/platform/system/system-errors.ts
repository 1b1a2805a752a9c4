/** Returns whether a system call failed with a code, such as ENOENT. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Returns the code of a failed system call, such as EACCES; undefined for another error. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error ? String(error.code) : undefined;
}

/** Returns whether a system call failed because the process or the machine lacks something at this moment. */
export function isOutOfResources(error: unknown): boolean {
  return isOutOfDescriptors(error) || hasErrorCode(error, 'EAGAIN') || hasErrorCode(error, 'ENOMEM');
}

/** Returns whether a file could not be opened because the process or the machine has no descriptor left. */
export function isOutOfDescriptors(error: unknown): boolean {
  return hasErrorCode(error, 'EMFILE') || hasErrorCode(error, 'ENFILE');
}
