import type { ServerRow } from './tables.ts';

/** What the usual signals mean to the developer of a server. */
const SIGNALS: Record<string, string> = {
  SIGABRT: 'it aborted itself',
  SIGBUS: 'a memory access that the machine cannot do',
  SIGFPE: 'an arithmetic error, such as a division by zero',
  SIGILL: 'an illegal instruction',
  SIGINT: 'it was interrupted',
  SIGKILL: 'it was killed',
  SIGPIPE: 'it wrote to a connection that was closed',
  SIGSEGV: 'a segmentation fault',
  SIGSYS: 'it made a system call that does not exist or that a filter forbids',
  SIGTERM: 'it was asked to end',
  SIGTRAP: 'a trap',
  SIGXCPU: 'it exceeded its processor time',
  SIGXFSZ: 'it exceeded the maximum size of a file',
};
/** What a shell reports for a command that it could not run. */
const SHELL_CODES: Record<number, string> = {
  126: 'its program cannot be executed',
  127: 'its program was not found',
};

/** How a server ended. */
export type EndFacts = Pick<ServerRow, 'exit_code' | 'exit_signal' | 'failure' | 'kill_at' | 'has_lost_machine'>;

/** Why a server ended whose machine was declared lost. */
export const MACHINE_LOST = 'its machine was lost';

/**
 * Returns whether a server failed, or ended with an error code or by a signal although its end was not requested. The
 * loss of its machine is no crash.
 */
export function hasCrashed({ exit_code, exit_signal, failure, kill_at, has_lost_machine }: EndFacts): boolean {
  if (has_lost_machine) return false;
  if (failure !== null) return true;
  return kill_at === null && (exit_signal !== null || (exit_code ?? 0) !== 0);
}

type Ended = Omit<EndFacts, 'kill_at'>;

/** Returns how a server ended, in words for its developer, as the rest of a sentence that begins with the server. */
export function describeEnd({ exit_code, exit_signal, failure, has_lost_machine }: Ended): string {
  if (has_lost_machine) return failure === MACHINE_LOST ? 'was lost with its machine' : `was lost: ${failure}`;
  if (failure !== null) return `failed: ${failure}`;
  if (exit_signal !== null) {
    const meaning = SIGNALS[exit_signal];
    return `was ended by the signal ${exit_signal}${meaning === undefined ? '' : ` (${meaning})`}`;
  }
  if (exit_code === null) return 'ended before it had run';
  const meaning = SHELL_CODES[exit_code];
  return `ended with exit code ${exit_code}${meaning === undefined ? '' : ` (${meaning})`}`;
}
