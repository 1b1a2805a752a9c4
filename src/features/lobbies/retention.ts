import { type Database, LOCKS } from '../../platform/database/database.ts';
import { transactInTurn } from '../../platform/database/turn.ts';
import { deleteLobbiesBefore, deletePlayersBefore } from './retention-store.ts';

const BEFORE_ALL_PLAYERS = '00000000-0000-0000-0000-000000000000';

/**
 * Removes players that came, and lobbies that stopped, before a moment, one small step at a time: yields after each the
 * namespaces whose lobbies it removed. Players go first, since a lobby stops after they came. Ends early when another
 * process is at it.
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
