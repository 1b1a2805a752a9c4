import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import type { Servers } from '../servers/servers.ts';
import * as store from './store.ts';
import type { LobbyRow, StopReason } from './tables.ts';

const FAILURES_IN_A_ROW_MAX = 3;

export interface EndingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  servers: Servers;
}

export type Ending = ReturnType<typeof createEnding>;

/** Creates the functions that end lobbies, with their players and servers. */
export function createEnding({ database, clock, events, servers }: EndingDependencies) {
  /** Ends a lobby. Returns false if it has already ended, or should end as idle but has players again. */
  async function stop(lobby: LobbyRow, reason: StopReason): Promise<boolean> {
    const { lobby_id, server_id } = lobby;
    const how = { reason, now: clock.now(), only_if_empty: reason === 'idle' };
    const is_stopped = await database.transact(async (tx) => {
      if (!(await store.stopLobby(tx, lobby, how))) return false;
      await servers.destroyWith(tx, lobby, server_id);
      return true;
    });
    if (is_stopped) events.emit({ event: 'lobby_stopped', lobby_id, reason });
    return is_stopped;
  }

  return {
    stop,
    /**
     * Ends lobbies and returns how many ended. A lobby that cannot be ended is reported and does not stop the others.
     * Throws after several failures in a row, because then the database is the cause.
     */
    async stopAll(lobbies: LobbyRow[], reason: StopReason): Promise<number> {
      let stopped = 0;
      let failures_in_a_row = 0;
      for (const lobby of lobbies) {
        try {
          stopped += Number(await stop(lobby, reason));
          failures_in_a_row = 0;
        } catch (cause) {
          failures_in_a_row += 1;
          if (failures_in_a_row > FAILURES_IN_A_ROW_MAX) throw cause;
          events.emit({ event: 'lobby_not_stopped', lobby_id: lobby.lobby_id, reason, cause });
        }
      }
      return stopped;
    },
  };
}
