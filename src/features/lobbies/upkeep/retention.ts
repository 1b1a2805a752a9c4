import { type Database, LOCKS } from '../../../platform/database/database.ts';
import { transactUnlessLocked } from '../../../platform/database/unless-locked.ts';
import { BEFORE_ALL_IDS } from '../tables.ts';
import { deleteLobbiesBefore, deletePlayersBefore } from './retention-store.ts';

/**
 * Deletes the rows of players who got their seats before a given time and no longer have them, and of lobbies that
 * stopped before it, in small steps. After each step, yields the namespaces in which lobbies were deleted. Deletes
 * players first, so that no lobby goes before its players. Ends early if another process is doing the same.
 */
export async function* deleteEnded(database: Database, before: Date): AsyncGenerator<string[]> {
  for (let last: string | undefined = BEFORE_ALL_IDS; last; ) {
    const after_id: string = last;
    const deleted = await transactUnlessLocked(database, LOCKS.retention, (tx) =>
      deletePlayersBefore(tx, before, after_id),
    );
    if (deleted.is_locked) return;
    last = deleted.result;
    yield [];
  }
  for (;;) {
    const deleted = await transactUnlessLocked(database, LOCKS.retention, (tx) => deleteLobbiesBefore(tx, before));
    if (deleted.is_locked || deleted.result.length === 0) return;
    yield deleted.result;
  }
}
