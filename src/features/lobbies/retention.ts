import { type Database, LOCKS } from '../../platform/database/database.ts';
import { transactInTurn } from '../../platform/database/turn.ts';
import { deleteLobbiesBefore, deletePlayersBefore } from './retention-store.ts';

const BEFORE_ALL_PLAYERS = '00000000-0000-0000-0000-000000000000';

/**
 * Removes players who got seats, and lobbies that stopped, before a moment, in small steps. Yields after each step the
 * namespaces whose lobbies it removed. Removes the players first, so that no lobby goes before its players. Ends early if
 * another process is doing the same.
 */
export async function* removeEnded(database: Database, before: Date): AsyncGenerator<string[]> {
  for (let last: string | undefined = BEFORE_ALL_PLAYERS; last; ) {
    const after: string = last;
    last = await transactInTurn(database, LOCKS.retention, (tx) => deletePlayersBefore(tx, before, after));
    yield [];
  }
  for (;;) {
    const namespace_ids = await transactInTurn(database, LOCKS.retention, (tx) => deleteLobbiesBefore(tx, before));
    if (!namespace_ids?.length) return;
    yield namespace_ids;
  }
}
