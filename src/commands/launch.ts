import { readOpenFile, writeOpenFile } from '../platform/containment/files.ts';
import { type LaunchOrder, launch } from '../platform/containment/launcher.ts';

const STDIN = 0;
/** Where the shim, or the launcher in its place, writes how the server ended. */
const EXIT_FILE = 3;
/** The exit code that a shell reports for a program that it found but could not execute. */
const NOT_EXECUTED = 126;

/** Replaces this process by the program that the order on standard input names. Returns an exit code only if that fails. */
export function launchOrdered(): number {
  try {
    const order: LaunchOrder = JSON.parse(readOpenFile(STDIN));
    return launch(order, { last_file: EXIT_FILE });
  } catch (error) {
    console.error(`[muster] the server could not be contained: ${error instanceof Error ? error.message : error}`);
    writeOpenFile(EXIT_FILE, `${NOT_EXECUTED}\n`);
    return NOT_EXECUTED;
  }
}
