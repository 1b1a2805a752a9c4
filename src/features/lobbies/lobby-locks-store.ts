import { setTimeout as pause } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import { ServiceError } from '../../platform/errors.ts';
import { lobbies } from './tables.ts';

const PAUSE_FIRST_MS = 20;

/** What a statement did to a lobby. `locked`: nothing, because another transaction has locked the lobby. */
export type LobbyChange = 'done' | 'locked';

/**
 * Returns a query, for a statement that bumps topics, that locks lobbies and selects the ids of those it could lock. It
 * skips lobbies that another transaction has locked: a wait would delay the other lobbies and keep the versions locked.
 */
export function lockUnlocked(lobby_ids: SQL): SQL {
  return sql`
    select lobby_id from ${lobbies}
    -- The count makes the versions the first rows that are locked, here as everywhere.
    where lobby_id = any(${lobby_ids}) and (select count(*) from bumped) > 0
    order by lobby_id for no key update skip locked`;
}

/** Repeats a change while its lobby is locked, after pauses that double. Throws DATABASE_BUSY if it stays locked. */
export async function whenUnlocked<Result>(
  change: () => Promise<Result | 'locked'>,
  locked_max_ms: number,
): Promise<Result> {
  const give_up_at = performance.now() + locked_max_ms;
  for (let pause_ms = PAUSE_FIRST_MS; ; pause_ms *= 2) {
    const result = await change();
    if (result !== 'locked') return result;
    if (performance.now() + pause_ms > give_up_at) throw new ServiceError('DATABASE_BUSY', {});
    await pause(pause_ms);
  }
}
