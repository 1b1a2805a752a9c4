import type { Clock } from '../../platform/clock.ts';
import type { Database, Queries } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { topics } from '../topics.ts';
import { createCrashes } from './crashes/crashes.ts';
import { readLastLines } from './logs/last-lines.ts';
import { createLogReading } from './logs/log-reading.ts';
import type { Logs } from './logs/logs.ts';
import { createServerRows } from './rows.ts';
import { type ServerFilter, type ServerScope, selectServer, selectServers } from './store.ts';
import type { ServerRow } from './tables.ts';
import { createUsageReading } from './usage/usage-reading.ts';
import { LAST_LINES_MAX, type ServerWithEnd } from './wire.ts';

export interface ServerViewsDependencies {
  database: Database;
  clock: Clock;
  logs: Logs;
}

type ServerKey = ServerScope & { server_id: string };

/** Creates what can be watched of servers. */
export function createServerViews({ database, clock, logs }: ServerViewsDependencies) {
  /** A server of an environment. Watchable. */
  const server: Watchable<ServerKey, ServerRow> = {
    topics: ({ server_id }) => [topics.server(server_id)],
    read: ({ server_id, ...scope }) => getServer(database.queries, scope, server_id),
  };

  /** The servers of an environment that match a filter. Watchable. */
  const list: Watchable<ServerScope & ServerFilter, ServerRow[]> = {
    topics: ({ namespace_id }) => [topics.serversOf(namespace_id)],
    read: ({ game_id, namespace_id, ...filter }) => selectServers(database.queries, { game_id, namespace_id }, filter),
  };

  /** A server, with the last lines of its log if it has ended. Watchable. */
  const serverEnd: Watchable<ServerKey, ServerWithEnd> = {
    topics: ({ server_id }) => [topics.server(server_id)],
    async read({ server_id, ...scope }) {
      const row = await getServer(database.queries, scope, server_id);
      if (row.ended_at === null) return { row, lines: [] };
      return { row, lines: await readLastLines(logs, { server_id, count: LAST_LINES_MAX }) };
    },
  };

  return {
    server,
    list,
    serverEnd,
    /** The servers of an environment, of which watchers see windows. Watchable. */
    rows: createServerRows({ database }),
    /** How servers of an environment crashed within the last hour. Watchable. */
    crashes: createCrashes({ database, clock }),
    /** One stream of a server's log. Watchable. */
    log: createLogReading({ database, logs }),
    /** What a server uses, minute by minute. Watchable. */
    usage: createUsageReading({ database, clock }),
  };
}

/** Returns a server of an environment. Throws SERVERS_SERVER_NOT_FOUND. */
export async function getServer(queries: Queries, scope: ServerScope, server_id: string): Promise<ServerRow> {
  const server = await selectServer(queries, scope, server_id);
  if (!server) throw new ServiceError('SERVERS_SERVER_NOT_FOUND', {});
  return server;
}
