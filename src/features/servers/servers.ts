import { after } from '../../platform/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Builds } from '../builds/builds.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import { topics } from '../topics.ts';
import { destroyServer } from './destroy-store.ts';
import { describeEnd, MACHINE_LOST } from './end-description.ts';
import { readLastLines } from './logs/last-lines.ts';
import { createLogSearch } from './logs/log-search.ts';
import { LOGS_KEPT_FOR_MS } from './logs/logs.ts';
import { endWithMachine } from './lost-machine.ts';
import { describeWait } from './placement/wait-reasons.ts';
import { selectWaitReason } from './placement/waiting-store.ts';
import { reachServer } from './reach.ts';
import { removeEnded } from './retention.ts';
import type { InUse } from './retention-store.ts';
import { countByStatusOn } from './rows-store.ts';
import { checkServer } from './rules.ts';
import { createServerViews, getServer, type ServerViewsDependencies } from './server-views.ts';
import { createStopAll, type StopAllDependencies } from './stop-all.ts';
import * as store from './store.ts';
import type { PlacedServer, ServerRow } from './tables.ts';
import { selectUsage } from './usage/usage-store.ts';
import { type CreateServer, RESTARTS_DEFAULT_MAX } from './wire.ts';

export type { ServerReach } from './reach.ts';
export { hasLostMachine, isEnding, isOnMachine, machineOf } from './store.ts';
export type { LogStream, ServerPort } from './tables.ts';

/** Default time between asking a server to end and killing it. */
const KILL_TIMEOUT_DEFAULT_MS = 30_000;

/** Servers of a namespace that wait for a machine of one region, beyond which its developer can create no more. */
const WAITING_MAX = 1_000;

/** How long a call of a server waits until its start is recorded: a cluster reports late that a pod runs. */
const START_RECORDED_WITHIN_MS = 20_000;

/** The columns that are set when a server is created; the others are observed. */
export type DesiredServer = Pick<
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
> &
  Partial<Pick<ServerRow, 'restarts_max'>>;

export interface ServersDependencies extends ServerViewsDependencies, StopAllDependencies {
  builds: Builds;
  datacenters: Datacenters;
}

export type Servers = ReturnType<typeof createServers>;

/** Creates the use cases of game servers: create, list, read, destroy. `reconcile.ts` converges machines to them. */
export function createServers(dependencies: ServersDependencies) {
  const { database, clock, builds, datacenters, logs, watch } = dependencies;

  /** Returns the row of a new server. */
  function toRow(desired: DesiredServer): ServerRow {
    const created_at = clock.now();
    // Its id has the time of its creation, so that a cursor is valid after the server was removed.
    const server_id = Bun.randomUUIDv7('hex', created_at);
    const { restarts_max = null } = desired;
    return {
      ...desired,
      server_id,
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
      has_lost_machine: false,
      restarts_max,
      chain_id: restarts_max === null ? null : server_id,
      restart_of: null,
      restarted_as: null,
      restart_count: 0,
      start_after: null,
    };
  }

  async function insert(tx: Tx, desired: DesiredServer): Promise<ServerRow> {
    const row = toRow(desired);
    await store.insertServer(tx, row);
    return row;
  }

  /** Inserts a server of a developer. The lobbies of a namespace have a limit of their own, so theirs are not refused. */
  async function insertIfFewWait(tx: Tx, desired: DesiredServer): Promise<ServerRow> {
    const row = toRow(desired);
    if (await store.insertServerIfFewWait(tx, row, WAITING_MAX)) return row;
    throw new ServiceError('SERVERS_TOO_MANY_WAITING', { waiting_max: WAITING_MAX });
  }

  const get = (scope: store.ServerScope, server_id: string) => getServer(database.queries, scope, server_id);

  return {
    ...createServerViews(dependencies),
    ...createStopAll(dependencies),
    get,
    /** Creates a server in another feature's transaction. The caller has checked everything. */
    createWith: insert,
    /** Checks and creates a server. A machine of the datacenter takes it later. */
    async create(scope: store.ServerScope, requested: CreateServer): Promise<ServerRow> {
      const ports = checkServer(requested);
      const datacenter_id = requested.datacenter.toLowerCase();
      const is_known = (await datacenters.list()).some((datacenter) => datacenter.datacenter_id === datacenter_id);
      if (!is_known) throw new ServiceError('CLUSTER_DATACENTER_NOT_FOUND', {});
      const build = await builds.get(scope, requested.runtime.build);
      if (!build.complete_ts) throw new ServiceError('BUILDS_BUILD_NOT_COMPLETE', {});
      const { kill_timeout, restart, restarts_max } = requested.lifecycle ?? {};
      return await database.transact((tx) =>
        insertIfFewWait(tx, {
          ...scope,
          datacenter_id,
          build_id: build.build_id,
          tags: requested.tags,
          arguments: requested.runtime.arguments ?? [],
          environment: requested.runtime.environment ?? {},
          service_environment: {},
          token_caller: null,
          network_mode: requested.network.mode ?? 'bridge',
          ports,
          cpu: requested.resources.cpu,
          memory: requested.resources.memory,
          kill_timeout_ms: kill_timeout ?? KILL_TIMEOUT_DEFAULT_MS,
          restarts_max: restart === 'on_crash' ? (restarts_max ?? RESTARTS_DEFAULT_MAX) : null,
        }),
      );
    },
    /**
     * Requests the end of a server, or of the last one of its chain, which a machine carries out soon after. Repeating it is
     * harmless.
     */
    async destroy(scope: store.ServerScope, server_id: string, override_kill_timeout_ms?: number): Promise<void> {
      const how = { now: clock.now(), override_kill_timeout_ms };
      const server = await database.transact((tx) => destroyServer(tx, scope, server_id, how));
      if (!server) throw new ServiceError('SERVERS_SERVER_NOT_FOUND', {});
    },
    /** Requests the end of a server in another feature's transaction. */
    async destroyWith(tx: Tx, scope: store.ServerScope, server_id: string): Promise<void> {
      await destroyServer(tx, scope, server_id, { now: clock.now(), override_kill_timeout_ms: undefined });
    },
    /** Records the end of all servers of a machine that is declared lost. Returns how many. */
    endWithLostMachine: (tx: Tx, node_id: string): Promise<number> =>
      endWithMachine(tx, node_id, { failure: MACHINE_LOST, now: clock.now() }),
    /** Returns the number of servers that have not ended, by machine. */
    countByMachine: () => store.countByMachine(database.queries),
    /** Returns how many servers machines have that have not ended, by status. */
    countByStatusOn: (node_ids: string[]) => countByStatusOn(database.queries, node_ids),
    /** Returns the servers that a machine has taken and that have not ended. */
    listOn: (node_id: string): Promise<PlacedServer[]> => store.selectOnMachine(database.queries, node_id),
    /** Returns the builds of machines' servers that have not ended, with the time at which the oldest was created. */
    buildsOn: (node_ids: string[]): Promise<Map<string, Date>> => store.selectBuildsOn(database.queries, node_ids),
    /** Returns whether a machine has servers that have not ended. */
    isAnyOn: (node_id: string): Promise<boolean> => store.isAnyOnMachine(database.queries, node_id),
    /**
     * Returns the ports of a server, with the host where players reach them. A server may call the service before its
     * start is recorded; then waits for that.
     */
    async reachablePortsOf(scope: store.ServerScope, server_id: string): Promise<ServerRow['ports']> {
      const read = async () => {
        const { ports, started_at } = await get(scope, server_id);
        const are_reachable = Object.values(ports).every(({ public_hostname }) => public_hostname !== undefined);
        return started_at !== null || are_reachable ? ports : undefined;
      };
      const timeout_ms = START_RECORDED_WITHIN_MS;
      const wait_options = { signal: AbortSignal.timeout(timeout_ms), caller_key: `server:${server_id}`, timeout_ms };
      const ports = (await read()) ?? (await watch.until(topics.server(server_id), read, wait_options));
      if (!ports) throw new ServiceError('GATEWAY_SERVER_NOT_READY', { server_id });
      return ports;
    },
    /** Returns the processor time of games' servers within a window, by game and datacenter. */
    usageOf: (game_ids: string[], window: { start: Date; end: Date }) =>
      selectUsage(database.queries, game_ids, window),
    /** Removes servers that ended before a given time, and whose logs are gone, in small steps. */
    removeEnded(before: Date, isInUse: InUse) {
      const logs_end = after(clock.now(), -LOGS_KEPT_FOR_MS);
      return removeEnded(database, before < logs_end ? before : logs_end, isInUse);
    },
    /** Returns the servers with presence on these machines, and those that wait for a machine of the datacenter. */
    withPresence: (machines: { node_ids: string[]; datacenter_id: string }) =>
      store.selectWithPresence(database.queries, machines),
    /** Returns whether a server can be reached, whatever its environment; undefined if there is none. */
    reach: (server_id: string) => reachServer(database.queries, server_id),
    /** Returns when servers started and how they ended, by id. */
    async outcomesOf(server_ids: string[]): Promise<Map<string, Outcome>> {
      const outcomes = await store.selectOutcomes(database.queries, server_ids);
      return new Map(
        outcomes.map((outcome) => {
          const has_exited = outcome.exit_code !== null || outcome.exit_signal !== null;
          return [outcome.server_id, { ...outcome, ...(has_exited && { exit: describeEnd(outcome) }) }];
        }),
      );
    },
    /** Returns why no machine has taken a server, in words for its developer; undefined if one has or soon will. */
    async whyWaiting(server_id: string): Promise<string | undefined> {
      const reason = await selectWaitReason(database.queries, server_id, clock.now());
      return reason && describeWait(reason);
    },
    /** Returns which of the servers have run on these machines since before a given time, and are not ending. */
    async selectRunningOn(running: store.RunningOn): Promise<Set<string>> {
      return new Set(await store.selectRunningOn(database.queries, running));
    },
    /** Returns the last lines of a server, by time, as text. */
    async lastLinesOf(server_id: string, count: number): Promise<string[]> {
      const lines = await readLastLines(logs, { server_id, count });
      return lines.map(({ bytes }) => Buffer.from(bytes).toString());
    },
    /** Adds a line that the service writes to the log of a server on this machine. */
    addLogLine: (server_id: string, text: string): Promise<void> =>
      logs.addLine({ server_id, stream: 'std_err' }, `[muster] ${text}`),
    /** Searches a stream of a server's log, page by page, from its end. */
    searchLog: createLogSearch(database).searchBack,
  };
}

type Observed = 'started_at' | 'exit_code' | 'exit_signal' | 'failure' | 'has_lost_machine';

export interface Outcome extends Pick<ServerRow, Observed> {
  /** How the program ended, in words; undefined if that is unknown. */
  exit?: string;
}
