/** The exit codes of commands. */
export const EXIT = {
  refused: 1,
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
    readonly exit_code: number = EXIT.refused,
    readonly refusal?: Refusal,
  ) {
    super(message);
  }
}
