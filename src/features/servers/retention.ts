import { type Database, LOCKS, type Tx } from '../../platform/database/database.ts';
import { transactInTurn } from '../../platform/database/turn.ts';
import { deletePortsBefore, deleteServersBefore, foldUsageBefore, type InUse } from './retention-store.ts';

/**
 * Deletes the rows of servers that ended before a given time, and of their ports, in small steps. Yields after each step the
 * namespaces whose servers it deleted. Their usage is kept as sums for each game. Ends early if another process is doing the
 * same.
 */
export async function* removeEnded(database: Database, before: Date, isInUse: InUse): AsyncGenerator<string[]> {
  const inTurn = <Result>(step: (tx: Tx) => Promise<Result>) => transactInTurn(database, LOCKS.retention, step);
  for (const deleteBatch of [deletePortsBefore, foldUsageBefore]) {
    for (;;) {
      const turn = await inTurn((tx) => deleteBatch(tx, before));
      if (turn.is_taken) return;
      if (turn.result === 0) break;
      yield [];
    }
  }
  for (;;) {
    const turn = await inTurn((tx) => deleteServersBefore(tx, before, isInUse));
    if (turn.is_taken || turn.result.length === 0) return;
    yield turn.result;
  }
}
