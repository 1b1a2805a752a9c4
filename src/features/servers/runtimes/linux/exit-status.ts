import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';

export const SHELL = '/bin/sh';

/**
 * Runs the server and writes its exit status to file descriptor 3, so that the status survives a restart of the service
 * and a full disk. Signals to the group do not end the shim; with an empty trap, the server would ignore them as well. The
 * shim runs the server in the foreground, because shells differ in the status that `wait` returns after a signal.
 *
 * Some shells write a line such as `Terminated` after a signal, which would look like the server's own. So the shim has no
 * stderr; the parentheses give it to the server alone.
 */
const SHIM = 'trap : TERM INT HUP QUIT USR1 USR2 ALRM; exec 4>&2 2>&-; ("$@") 2>&4 3>&- 4>&-; echo $? >&3';

/** Returns the command that runs a command under the shim. */
export function underShim(command: string[]): string[] {
  return [SHELL, '-c', SHIM, 'muster-server', ...command];
}

export interface ExitStatus {
  exit_code: number | null;
  exit_signal: string | null;
}

/** Blank lines, as long as any status. The status takes their place on the disk. */
const RESERVED = '\n'.repeat(4);

/** Creates the file for the exit status of a server, to be opened at its beginning. */
export function createExitFile(path: string): void {
  writeFileSync(path, RESERVED, { mode: 0o600 });
}

/** Reads the exit status that the shim wrote. */
export function readExitStatus(file: string): ExitStatus {
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  return text === '' ? { exit_code: null, exit_signal: null } : exitStatusOf(Number(text));
}

/** Returns whether a server may have been killed because memory ran out. The kernel does that by SIGKILL. */
export function mayBeOutOfMemory({ exit_code, exit_signal }: ExitStatus): boolean {
  return exit_signal === 'SIGKILL' || (exit_signal === null && exit_code === null);
}

/** Returns what a status means. Shells and inits report 128 + n for a program that signal n ended. */
export function exitStatusOf(status: number): ExitStatus {
  const signal = SIGNALS.get(status - 128);
  return signal ? { exit_code: null, exit_signal: signal } : { exit_code: status, exit_signal: null };
}

/** Names of signals by number. Some numbers have several names, and the first is the usual one: SIGABRT, not SIGIOT. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);
