import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { toServiceError } from '../../platform/database/failures.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { handleOf } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';
import type { PlacedServer } from './tables.ts';

/** The largest share of time that is spent on checks, unless they would be further apart than they may be. */
const SHARE_MAX = 1 / 50;

export interface EnforcingDependencies extends ForcedEndDependencies {
  events: Events;
  /** Returns this machine's servers. */
  listServers(): readonly PlacedServer[];
}

/** Ends a server. `failure`: what it did, for its developer. */
export type ForceEnd = (server: PlacedServer, failure: string) => Promise<void>;

interface Rule {
  /** The name of its loop. */
  name: string;
  every_ms: number;
  every_max_ms: number;
  /** Ends those servers that break the rule. */
  enforce(servers: readonly PlacedServer[], forceEnd: ForceEnd): Promise<void>;
}

/** Starts the loop that ends servers of this machine that break a rule. */
export function startEnforcing(dependencies: EnforcingDependencies, rule: Rule, signal: AbortSignal): Loop {
  const { events, listServers } = dependencies;
  const { name, every_ms, every_max_ms, enforce } = rule;
  const forceEnd = createForcedEnds(dependencies);
  let took_ms = 0;
  return startLoop({
    name,
    every_ms: () => Math.min(every_max_ms, Math.max(every_ms, took_ms / SHARE_MAX)),
    signal,
    events,
    async step() {
      const started = performance.now();
      // A server that has failed is ending for another reason already.
      const accepted = listServers().filter(({ identity, failure }) => identity !== null && failure === null);
      if (accepted.length > 0) await enforce(accepted, forceEnd);
      took_ms = performance.now() - started;
      return 0;
    },
  });
}

interface ForcedEndDependencies {
  database: Database;
  clock: Clock;
  runtime: Pick<Runtime, 'kill' | 'remove'>;
  /** Why servers were ended, until that is recorded. */
  unrecorded_failures: Map<string, string>;
}

/**
 * Creates the function that ends a server of this machine by recording that it failed. If the database cannot record that,
 * perhaps because this server has filled its disk, kills the server at once.
 */
function createForcedEnds({ database, clock, runtime, unrecorded_failures }: ForcedEndDependencies): ForceEnd {
  return async (server, failure) => {
    try {
      await database.transact((tx) => store.setFailed(tx, server, failure, clock.now()));
    } catch (cause) {
      const code = toServiceError(cause)?.code;
      if (code !== 'STORAGE_FULL' && code !== 'DATABASE_UNAVAILABLE') throw cause;
      unrecorded_failures.set(server.server_id, failure);
      const gone = await runtime.kill([handleOf(server)]);
      // The database has no room for its output either.
      if (code === 'STORAGE_FULL' && gone.has(server.server_id)) await runtime.remove(server.server_id);
    }
  };
}
