import { type SQL, sql } from 'drizzle-orm';
import { lobbies } from './tables.ts';

/** Whether a statement changed a lobby. `locked`: not, because another transaction has locked the lobby. */
export type LockedOutcome = 'done' | 'locked';

/**
 * Returns a query, for a statement that bumps topics, that locks lobbies and selects the ids of those it could lock. It
 * skips lobbies that another transaction has locked: a wait would delay the other lobbies and keep the versions locked.
 */
export function lockSkippingLocked(lobby_ids: SQL): SQL {
  return sql`
    select lobby_id from ${lobbies}
    -- Counting "bumped" locks the topics' versions before any other row. All transactions lock in this order, so no two
    -- wait for each other.
    where lobby_id = any(${lobby_ids}) and (select count(*) from bumped) > 0
    order by lobby_id for no key update skip locked`;
}
