import { EXIT } from '../cli/failure.ts';
import { listenForStop } from '../cli/stop-signals.ts';
import { describeAbsence } from '../platform/database/failures.ts';
import { ServiceError, StartError } from '../platform/errors.ts';

/**
 * Runs work that a signal such as ctrl-C may stop. Returns the exit code. Throws a StartError that begins with `not_done` if
 * the database or the storage is unavailable.
 */
export async function runStoppable(not_done: string, work: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const stopping = new AbortController();
  void listenForStop(() => process.exit(EXIT.interrupted)).then((reason) => stopping.abort(reason));
  try {
    await work(stopping.signal);
    return 0;
  } catch (cause) {
    if (stopping.signal.aborted) {
      console.error(`${not_done}, because ${stopping.signal.reason} stopped it.`);
      return EXIT.interrupted;
    }
    const absence = describeAbsence(cause);
    if (absence !== undefined)
      throw new StartError(`${not_done}, because ${absence}: repeat the command once it answers.`, { cause });
    if (cause instanceof ServiceError) throw new StartError(`${not_done}: ${cause.message}`, { cause });
    throw cause;
  }
}
