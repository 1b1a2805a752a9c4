import { setTimeout as sleep } from 'node:timers/promises';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { startLoop } from '../../platform/loop.ts';
import { DAY_MS } from '../../platform/units.ts';
import { touch } from '../../platform/watch/versions.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import type { Servers } from '../servers/servers.ts';
import { topics } from '../topics.ts';

const EVERY_MS = 60_000;

interface RetentionSettings {
  /** Days to keep the history. 0 keeps it forever. */
  history_days: number;
}

export interface RetentionDependencies extends RetentionSettings {
  database: Database;
  clock: Clock;
  events: Events;
  lobbies: Pick<Lobbies, 'deleteEnded' | 'hasLobbyOn'>;
  servers: Pick<Servers, 'removeEnded'>;
}

/**
 * Starts the loop that removes players `history_days` after they got their seats, and lobbies and servers `history_days`
 * after they ended, in small steps.
 */
export function startRetention(dependencies: RetentionDependencies, signal: AbortSignal): { stopped: Promise<void> } {
  const { database, clock, events, lobbies, servers, history_days } = dependencies;

  async function removeOld(): Promise<number> {
    const before = after(clock.now(), -history_days * DAY_MS);
    await inSmallSteps(lobbies.deleteEnded(before));
    await inSmallSteps(servers.removeEnded(before, lobbies.hasLobbyOn));
    return 0;
  }

  /** Pauses after each step for as long as it took, so that a backlog uses the database for half of the time at most. */
  async function inSmallSteps(steps: AsyncGenerator<string[]>): Promise<void> {
    let started = performance.now();
    for await (const namespace_ids of steps) {
      // Bumps each namespace's topic of servers, which the history of lobbies has too. Each has a transaction of its own,
      // because creating a lobby waits for these rows.
      for (const namespace_id of namespace_ids) {
        await database.transact((tx) => touch(tx, [topics.serversOf(namespace_id)]));
      }
      await sleep(performance.now() - started, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      started = performance.now();
    }
  }

  if (history_days === 0) return { stopped: Promise.resolve() };
  return startLoop({ name: 'old-history', every_ms: EVERY_MS, signal, events, step: removeOld });
}
