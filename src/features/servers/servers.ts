import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { Builds } from '../builds/builds.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import { topics } from '../topics.ts';
import { describeEnding } from './end-description.ts';
import { createLogReading } from './log-reading.ts';
import { LOGS_KEPT_FOR_MS, type Logs } from './logs.ts';
import { removeEnded } from './retention.ts';
import type { InUse } from './retention-store.ts';
import { checkServer } from './rules.ts';
import * as store from './store.ts';
import { LOG_STREAMS, type ServerRow } from './tables.ts';
import { describeWait } from './turns.ts';
import { createUsageReading } from './usage-reading.ts';
import { selectUsage } from './usage-store.ts';
import { selectWaitReason } from './waiting-store.ts';
import { type CreateServer, type EndedServer, LAST_LINES } from './wire.ts';

export { isEnding } from './store.ts';
export type { LogStream, ServerPort } from './tables.ts';

/** Default time between asking a server to end and killing it. */
const KILL_TIMEOUT_DEFAULT_MS = 30_000;

/** Time between asking and killing when ctrl-C ends all servers of a machine. */
const STOP_ALL_WITHIN_MS = 5_000;

/** The columns that are set when a server is created; the others are observed. */
export type WantedServer = Pick<
  ServerRow,
  | 'game_id'
  | 'namespace_id'
  | 'datacenter_id'
  | 'build_id'
  | 'tags'
  | 'arguments'
  | 'environment'
  | 'service_environment'
  | 'token_caller'
  | 'network_mode'
  | 'ports'
  | 'cpu'
  | 'memory'
  | 'kill_timeout_ms'
>;

export interface ServersDependencies {
  database: Database;
  clock: Clock;
  builds: Builds;
  datacenters: Datacenters;
  logs: Logs;
  watch: Watch;
}

export type Servers = ReturnType<typeof createServers>;

/** Creates the use cases of game servers: create, list, read, destroy. `reconcile.ts` converges machines to them. */
export function createServers({ database, clock, builds, datacenters, logs, watch }: ServersDependencies) {
  async function insert(tx: Tx, wanted: WantedServer): Promise<ServerRow> {
    const created_at = clock.now();
    const row: ServerRow = {
      ...wanted,
      // Its id has the time of its creation, so that a cursor is valid after the server was removed.
      server_id: Bun.randomUUIDv7('hex', created_at),
      created_at,
      node_id: null,
      wait_reason: null,
      identity: null,
      started_at: null,
      destroyed_at: null,
      kill_at: null,
      ended_at: null,
      exit_code: null,
      exit_signal: null,
      failure: null,
    };
    await store.insertServer(tx, row);
    return row;
  }

  async function get(scope: store.ServerScope, server_id: string): Promise<ServerRow> {
    const server = await store.selectServer(database.queries, scope, server_id);
    if (!server) throw new ServiceError('SERVERS_SERVER_NOT_FOUND', {});
    return server;
  }

  /** A server of an environment. Watchable. */
  const one: Watchable<store.ServerScope & { server_id: string }, ServerRow> = {
    topics: ({ server_id }) => [topics.server(server_id)],
    read: ({ server_id, ...scope }) => get(scope, server_id),
  };

  /** The servers of an environment that match a filter. Watchable. */
  const many: Watchable<store.ServerScope & store.ServerFilter, ServerRow[]> = {
    topics: ({ namespace_id }) => [topics.serversOf(namespace_id)],
    read: ({ game_id, namespace_id, ...filter }) =>
      store.selectServers(database.queries, { game_id, namespace_id }, filter),
  };

  /** A server, with the last lines of its log if it has ended. Watchable. */
  const ended: Watchable<store.ServerScope & { server_id: string }, EndedServer> = {
    topics: ({ server_id }) => [topics.server(server_id)],
    async read({ server_id, ...scope }) {
      const row = await get(scope, server_id);
      if (row.ended_at === null) return { row, lines: [] };
      const of_streams = LOG_STREAMS.map(async (stream) => {
        const { lines } = await logs.lastLines({ server_id, stream });
        return lines.slice(-LAST_LINES).map((line) => ({ stream, ...line }));
      });
      return { row, lines: (await Promise.all(of_streams)).flat() };
    },
  };

  return {
    get,
    one,
    ended,
    many,
    /** Creates a server in another feature's transaction. The caller has checked everything. */
    createWith: insert,
    /** Checks and creates a server. A machine of the datacenter takes it later. */
    async create(scope: store.ServerScope, wanted: CreateServer): Promise<ServerRow> {
      const ports = checkServer(wanted);
      const wanted_datacenter = wanted.datacenter.toLowerCase();
      const datacenter = (await datacenters.list()).find(({ datacenter_id }) => datacenter_id === wanted_datacenter);
      if (!datacenter) throw new ServiceError('CLUSTER_DATACENTER_NOT_FOUND', {});
      const build = await builds.get(scope, wanted.runtime.build);
      if (!build.complete_ts) throw new ServiceError('BUILDS_BUILD_NOT_COMPLETE', {});
      return await database.transact((tx) =>
        insert(tx, {
          ...scope,
          datacenter_id: datacenter.datacenter_id,
          build_id: build.build_id,
          tags: wanted.tags,
          arguments: wanted.runtime.arguments ?? [],
          environment: wanted.runtime.environment ?? {},
          service_environment: {},
          token_caller: null,
          network_mode: wanted.network.mode ?? 'bridge',
          ports,
          cpu: wanted.resources.cpu,
          memory: wanted.resources.memory,
          kill_timeout_ms: wanted.lifecycle?.kill_timeout ?? KILL_TIMEOUT_DEFAULT_MS,
        }),
      );
    },
    /** Requests the end of a server, which a machine carries out soon after. Repeating it is harmless. */
    async destroy(scope: store.ServerScope, server_id: string, override_kill_timeout_ms?: number): Promise<void> {
      const how = { now: clock.now(), override_kill_timeout_ms };
      const server = await database.transact((tx) => store.destroyServer(tx, scope, server_id, how));
      if (!server) throw new ServiceError('SERVERS_SERVER_NOT_FOUND', {});
    },
    /** Requests the end of a server in another feature's transaction. */
    async destroyWith(tx: Tx, scope: store.ServerScope, server_id: string): Promise<void> {
      await store.destroyServer(tx, scope, server_id, { now: clock.now(), override_kill_timeout_ms: undefined });
    },
    /** Ends all servers of a machine and waits a few seconds at most until they have ended. */
    async stopAllOf(node_id: string): Promise<void> {
      const now = clock.now();
      await database.transact((tx) => store.destroyAllOf(tx, node_id, now, after(now, STOP_ALL_WITHIN_MS)));
      const haveEnded = async () =>
        (await store.selectOfNode(database.queries, node_id)).length === 0 ? true : undefined;
      const waiting = { signal: AbortSignal.timeout(2 * STOP_ALL_WITHIN_MS), caller_key: 'stop' };
      await watch.until(topics.serversEnding(), haveEnded, { ...waiting, timeout_ms: 2 * STOP_ALL_WITHIN_MS });
    },
    /** Returns the ids of the builds of a machine's servers that have not ended. */
    buildsOn: (node_id: string): Promise<Set<string>> => store.selectBuildsOn(database.queries, node_id),
    /** Returns whether a machine has servers that have not ended. */
    isAnyOn: (node_id: string): Promise<boolean> => store.hasServers(database.queries, node_id),
    /** Returns the ports of a server, as far as they are known. */
    async portsOf(scope: store.ServerScope, server_id: string): Promise<ServerRow['ports']> {
      return (await get(scope, server_id)).ports;
    },
    /** Returns the processor time of games' servers within a window, by game and datacenter. */
    usageOf: (game_ids: string[], window: { start: Date; end: Date }) =>
      selectUsage(database.queries, game_ids, window),
    /** Removes servers that ended before a moment, and whose logs are gone, in small steps. */
    removeEnded(before: Date, isInUse: InUse) {
      const logs_end = after(clock.now(), -LOGS_KEPT_FOR_MS);
      return removeEnded(database, before < logs_end ? before : logs_end, isInUse);
    },
    /** Returns when servers started and how they ended, by id. */
    async outcomesOf(server_ids: string[]): Promise<Map<string, Outcome>> {
      const outcomes = await store.selectOutcomes(database.queries, server_ids);
      return new Map(
        outcomes.map((outcome) => {
          const has_exited = outcome.exit_code !== null || outcome.exit_signal !== null;
          return [outcome.server_id, { ...outcome, ...(has_exited && { exit: describeEnding(outcome) }) }];
        }),
      );
    },
    /** Returns why no machine has taken a server, in words for its developer; undefined if one has or soon will. */
    async whyWaiting(server_id: string): Promise<string | undefined> {
      const reason = await selectWaitReason(database.queries, server_id);
      return reason && describeWait(reason);
    },
    /** Returns which of the servers a machine has been running since before a moment. */
    async selectRunningHere(wanted: store.RunningHere): Promise<Set<string>> {
      return new Set(await store.selectRunningHere(database.queries, wanted));
    },
    /** Returns the last lines of each stream of a server, as text. */
    async lastLinesOf(server_id: string, count: number): Promise<string[]> {
      const of_streams = LOG_STREAMS.map(async (stream) => {
        const { lines } = await logs.lastLines({ server_id, stream });
        return lines.slice(-count).map(({ bytes }) => Buffer.from(bytes).toString());
      });
      return (await Promise.all(of_streams)).flat();
    },
    /** Adds a line that the service writes to the log of a server on this machine. */
    addLogLine: (server_id: string, text: string): Promise<void> =>
      logs.addLine({ server_id, stream: 'std_err' }, `[muster] ${text}`),
    /** One stream of a server's log. Watchable. */
    log: createLogReading({ database, logs }),
    /** What a server uses, minute by minute. Watchable. */
    usage: createUsageReading({ database, clock }),
  };
}

export interface Outcome extends Pick<ServerRow, 'started_at' | 'exit_code' | 'exit_signal' | 'failure'> {
  /** How the program ended, in words; undefined if that is unknown. */
  exit?: string;
}
