import { describeUnavailability } from '../platform/database/failures.ts';
import { ServiceError, StartError } from '../platform/errors.ts';
import { EXIT } from '../terminal/failure.ts';
import { createStopSignal } from '../terminal/stop-signals.ts';
import { terminal } from '../terminal/terminal.ts';
import type { CommandOutput } from './command-output.ts';

/** Says why a command does nothing yet, if another process holds the lock that it needs. */
export const sayThatItWaits = (): void =>
  terminal.say('Waiting for another process that starts, migrates, backs up or restores this database.');

/**
 * Runs the work of a command on a database, which a signal such as ctrl-C may stop. Returns the exit code. Throws a StartError
 * that begins with `not_done` if the database or the storage is unavailable.
 */
export async function runDatabaseCommand(
  { not_done, output }: { not_done: string; output: CommandOutput },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const stopping = createStopSignal();
  try {
    await work(stopping);
    return 0;
  } catch (cause) {
    // A StartError is not the consequence of a signal, but a full disk, for example, a moment before it.
    if (stopping.aborted && !(cause instanceof StartError)) {
      return output.fail(`${not_done}, because ${stopping.reason} stopped it.`, EXIT.interrupted);
    }
    const unavailability = describeUnavailability(cause);
    if (unavailability !== undefined)
      throw new StartError(`${not_done}, because ${unavailability}: repeat the command once it answers.`, { cause });
    if (cause instanceof ServiceError) throw new StartError(`${not_done}: ${cause.message}`, { cause });
    throw cause;
  }
}
