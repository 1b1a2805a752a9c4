import { type Database, LOCKS } from '../../platform/database/database.ts';
import { transactInTurn } from '../../platform/database/turn.ts';
import { deleteLobbiesBefore, deletePlayersBefore } from './retention-store.ts';

const BEFORE_ALL_PLAYERS = '00000000-0000-0000-0000-000000000000';

/**
 * Deletes the rows of players who got seats, and of lobbies that stopped, before a given time, in small steps. Yields after
 * each step the namespaces whose lobbies it deleted. Deletes players first, so that no lobby goes before its players. Ends
 * early if another process is doing the same.
 */
export async function* removeEnded(database: Database, before: Date): AsyncGenerator<string[]> {
  for (let last: string | undefined = BEFORE_ALL_PLAYERS; last; ) {
    const after: string = last;
    const turn = await transactInTurn(database, LOCKS.retention, (tx) => deletePlayersBefore(tx, before, after));
    if (turn.is_taken) return;
    last = turn.result;
    yield [];
  }
  for (;;) {
    const turn = await transactInTurn(database, LOCKS.retention, (tx) => deleteLobbiesBefore(tx, before));
    if (turn.is_taken || turn.result.length === 0) return;
    yield turn.result;
  }
}
