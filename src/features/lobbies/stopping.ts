import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isLocked, isUnavailable } from '../../platform/database/failures.ts';
import type { Events } from '../../platform/events.ts';
import type { Servers } from '../servers/servers.ts';
import * as store from './store.ts';
import type { StopReason } from './tables.ts';

/** How long the stop of a lobby waits for a lock: longer than a busy service holds one. Other stops wait meanwhile. */
const LOCK_WAIT_MAX_MS = 3_000;
/** After this number of locked lobbies of a namespace, the rest of it waits for the next call. */
const LOCKED_MAX = 3;

export interface StoppingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  servers: Servers;
}

export type Stopping = ReturnType<typeof createStopping>;

/** Creates the functions that stop lobbies. They also remove the players and end the servers. */
export function createStopping({ database, clock, events, servers }: StoppingDependencies) {
  /**
   * Stops a lobby. Returns false if it has already stopped, or should stop only if it is empty and has players again.
   */
  async function stop(
    lobby: store.LobbyWithoutState,
    reason: StopReason,
    { only_if_empty = false } = {},
  ): Promise<boolean> {
    const { lobby_id, server_id } = lobby;
    const how = { reason, now: clock.now(), only_if_empty };
    const is_stopped = await database.transact(
      async (tx) => {
        if (!(await store.stopLobby(tx, lobby, how))) return false;
        await servers.destroyWith(tx, lobby, server_id);
        return true;
      },
      { lock_wait_max_ms: LOCK_WAIT_MAX_MS },
    );
    if (is_stopped) events.emit({ event: 'lobby_stopped', lobby_id, reason });
    return is_stopped;
  }

  return {
    stop,
    /**
     * Stops lobbies and returns how many stopped. A lobby that cannot be stopped is reported and does not keep the
     * others from stopping. If several lobbies of a namespace are locked, the rest of that namespace is left to the
     * next call. Throws while the database cannot be used, because then no lobby can be stopped.
     */
    async stopAll(
      lobbies: store.LobbyWithoutState[],
      reason: StopReason,
      { only_if_empty = false } = {},
    ): Promise<number> {
      let stopped = 0;
      const locked = new Map<string, number>();
      for (const lobby of lobbies) {
        const { namespace_id } = lobby;
        const locked_there = locked.get(namespace_id) ?? 0;
        if (locked_there === LOCKED_MAX) continue;
        try {
          stopped += Number(await stop(lobby, reason, { only_if_empty }));
        } catch (cause) {
          if (isLocked(cause)) locked.set(namespace_id, locked_there + 1);
          else if (isUnavailable(cause)) throw cause;
          events.emit({ event: 'lobby_not_stopped', lobby_id: lobby.lobby_id, reason, cause });
        }
      }
      return stopped;
    },
  };
}
