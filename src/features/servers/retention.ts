import { type Database, LOCKS, type Tx } from '../../platform/database/database.ts';
import { transactInTurn } from '../../platform/database/turn.ts';
import { deletePortsBefore, deleteServersBefore, foldUsageBefore, type InUse } from './retention-store.ts';

/**
 * Removes servers that ended before a moment, and their ports, in small steps. Yields after each step the namespaces whose
 * servers it removed. Their usage is kept as sums for each game. Ends early if another process removes servers already.
 */
export async function* removeEnded(database: Database, before: Date, isInUse: InUse): AsyncGenerator<string[]> {
  const inTurn = <Result>(step: (tx: Tx) => Promise<Result>) => transactInTurn(database, LOCKS.retention, step);
  while (await inTurn((tx) => deletePortsBefore(tx, before))) yield [];
  while (await inTurn((tx) => foldUsageBefore(tx, before))) yield [];
  for (;;) {
    const namespace_ids = await inTurn((tx) => deleteServersBefore(tx, before, isInUse));
    if (!namespace_ids?.length) return;
    yield namespace_ids;
  }
}
