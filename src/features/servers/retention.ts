import { type Database, LOCKS, type Tx } from '../../platform/database/database.ts';
import { transactUnlessLocked } from '../../platform/database/unless-locked.ts';
import { deletePortsBefore, deleteServersBefore, foldUsageBefore, type InUse } from './retention-store.ts';

/**
 * Deletes the rows of servers that ended before a given time, and of their ports, in small steps. Yields after each step the
 * namespaces whose servers it deleted. Their usage is kept as sums for each game. Ends early if another process is doing the
 * same.
 */
export async function* removeEnded(database: Database, before: Date, isInUse: InUse): AsyncGenerator<string[]> {
  const unlessLocked = <Result>(step: (tx: Tx) => Promise<Result>) =>
    transactUnlessLocked(database, LOCKS.retention, step);
  for (const deleteBatch of [deletePortsBefore, foldUsageBefore]) {
    for (;;) {
      const deleted = await unlessLocked((tx) => deleteBatch(tx, before));
      if (deleted.is_locked) return;
      if (deleted.result === 0) break;
      yield [];
    }
  }
  for (;;) {
    const deleted = await unlessLocked((tx) => deleteServersBefore(tx, before, isInUse));
    if (deleted.is_locked || deleted.result.length === 0) return;
    yield deleted.result;
  }
}
