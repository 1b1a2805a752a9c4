/** The exit codes of commands. */
export const EXIT = {
  failed: 1,
  wrong_use: 2,
  not_logged_in: 3,
  not_found: 4,
  timed_out: 5,
  interrupted: 130,
} as const;

/** The error of a refused request. */
export interface Refusal {
  code: string;
  ray_id: string | undefined;
  /** Details for programs. */
  metadata?: unknown;
}

/** Ends a command with a message and an exit code. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exit_code: number = EXIT.failed,
    readonly refusal?: Refusal,
  ) {
    super(message);
  }
}

/** Returns whether a failure does not pass: the token is not accepted any more, or what the command is about is gone. */
export function isFinal({ exit_code }: Failure): boolean {
  return exit_code === EXIT.not_logged_in || exit_code === EXIT.not_found;
}

/** Problems with a file, by the code of the system's error. */
const FILE_PROBLEMS: Record<string, string> = {
  ENOENT: 'does not exist. If another program removed it meanwhile, try again; otherwise create its folder',
  EACCES: 'cannot be read or written (EACCES). Change its permissions, or those of its folder',
  ENOSPC: 'cannot be written, because the disk is full. Free some space',
};

/**
 * Returns the failure with which a command ends because of an error: the error itself if it is a Failure, or one about a
 * file that the system refused, which may happen at any time. Returns undefined for any other error.
 */
export function toFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  // An error of `fetch` has a path, too, but names no system call.
  if (!(error instanceof Error && 'code' in error && 'path' in error && 'syscall' in error)) return undefined;
  const problem = FILE_PROBLEMS[String(error.code)];
  return new Failure(
    problem === undefined ? `The system refused a file: ${error.message}.` : `${error.path} ${problem}.`,
  );
}
