import { type Database, LOCKS, type Tx } from '../../platform/database/database.ts';
import { transactInTurn } from '../../platform/database/turn.ts';
import { deletePortsBefore, deleteServersBefore, foldUsageBefore, type InUse } from './retention-store.ts';

/**
 * Removes servers that ended before a moment, with their ports, one small step at a time; yields after each the namespaces
 * whose servers it removed. What they used stays, summed up for each game. Ends early when another process is at it.
 */
export async function* removeEnded(database: Database, before: Date, isInUse: InUse): AsyncGenerator<string[]> {
  const take = <Result>(step: (tx: Tx) => Promise<Result>) => transactInTurn(database, LOCKS.retention, step);
  while (await take((tx) => deletePortsBefore(tx, before))) yield [];
  while (await take((tx) => foldUsageBefore(tx, before))) yield [];
  for (;;) {
    const namespace_ids = await take((tx) => deleteServersBefore(tx, before, isInUse));
    if (!namespace_ids?.length) return;
    yield namespace_ids;
  }
}
