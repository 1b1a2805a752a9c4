import { createLogs, type Logs } from '../../../src/features/servers/logs/logs.ts';
import { type ReconcileDependencies, startReconciling } from '../../../src/features/servers/reconcile.ts';
import type { Observation, Runtime, ServerHandle } from '../../../src/features/servers/runtimes/runtime.ts';
import { insertServer } from '../../../src/features/servers/store.ts';
import type { ServerRow } from '../../../src/features/servers/tables.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { openFeed } from '../../../src/platform/watch/feed.ts';
import { LONE_MACHINE } from '../machines/lone-machine.ts';
import { waitingServer } from '../runtimes/waiting-server.ts';
import type { TestService } from '../service.ts';
import { openServiceTokens } from '../service-tokens.ts';
import { waitFor } from '../wait.ts';

const ENDED: Observation = { is: 'ended', exit_code: 0, exit_signal: null };
const BUILD = {
  kind: 'javascript' as const,
  game_id: crypto.randomUUID(),
  sha256: undefined,
  directory: '/nowhere',
  command: [],
};

export const idsOf = (servers: readonly ServerHandle[]): string[] => servers.map(({ server_id }) => server_id);

/** A kill after which no server is left. */
export const killAtOnce: Runtime['kill'] = async (servers, onGone) => {
  for (const server_id of idsOf(servers)) onGone?.(server_id);
  return new Set(idsOf(servers));
};

/** Returns a runtime whose servers have all ended, without output. */
export function createEndedRuntime(changes: Partial<Runtime> = {}): Runtime {
  return {
    kinds: [],
    start: () => Promise.reject(new Error('nothing is started')),
    observe: async (servers) => new Map(idsOf(servers).map((server_id) => [server_id, ENDED])),
    stop: async () => false,
    kill: killAtOnce,
    readOutput: async (_server, _stream, { from = '0' }) => ({
      bytes: new Uint8Array(),
      skipped_bytes: 0,
      has_more: false,
      resumeAfter: () => from,
    }),
    remove: async () => {},
    list: async () => [],
    onChange() {},
    ...changes,
  };
}

/** A machine with a simulated runtime, whose servers are in the database of a service. */
export interface SimulatedMachine extends AsyncDisposable {
  events: ServiceEvent[];
  database: Database;
  logs: Logs;
  /** Adds a server of this machine to the database, and returns its id. */
  add(columns?: Partial<ServerRow>): Promise<string>;
  /** Removes leftovers, as after the machine was declared lost. */
  removeLeftovers(): Promise<void>;
  /** Waits for an event about a server. */
  waitForEvent(name: ServiceEvent['event'], server_id: string): Promise<ServiceEvent>;
}

/** Opens a machine that reconciles its servers by a simulated runtime. */
export async function openSimulatedMachine(
  { database_address, clock }: Pick<TestService, 'database_address' | 'clock'>,
  place: { game_id: string; namespace_id: string },
  runtime: Runtime,
  {
    developerGroupsOf = async () => new Map(),
    ...given
  }: Partial<Pick<ReconcileDependencies, 'developerGroupsOf' | 'unrecorded_failures'>> = {},
): Promise<SimulatedMachine> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(openDatabase(database_address, 4));
  const emitted: ServiceEvent[] = [];
  const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
  const feed = opened.use(await openFeed(database, events));
  const logs = createLogs({ database, clock });
  const ids = { node_id: crypto.randomUUID(), datacenter_id: crypto.randomUUID() };
  const stop = new AbortController();
  let removeLeftovers = async () => {};
  const machines: ReconcileDependencies['machines'] = {
    ...LONE_MACHINE,
    onDeclaredLost: (listener) => {
      removeLeftovers = async () => void (await listener());
    },
  };
  const { stopped } = startReconciling(
    {
      ...given,
      database,
      clock,
      events,
      feed,
      runtime,
      logs,
      takes_servers: true,
      builds: { kindOf: async () => BUILD.kind, ensureUnpacked: async () => BUILD, isUnpacked: async () => true },
      tokens: await openServiceTokens({ database_address, clock }),
      developerGroupsOf,
      machine: {
        ...ids,
        api_url: 'http://127.0.0.1:8080',
        server_ports: { min: 26_000, max: 26_199 },
        servers_max: 1_000,
        servers_per_group_max: 1_000,
        resources_max: undefined,
        relayed: new Set(),
      },
      relays: { openOnly: async () => new Set() },
      machines,
    },
    stop.signal,
  );
  opened.defer(async () => {
    stop.abort();
    await stopped;
  });
  const everything = opened.move();
  return {
    events: emitted,
    database,
    logs,
    async add(columns = {}) {
      const row: ServerRow = {
        ...waitingServer({ ...place, build_id: crypto.randomUUID(), datacenter_id: ids.datacenter_id }),
        node_id: ids.node_id,
        created_at: clock.now(),
        ...columns,
      };
      await database.transact((tx) => insertServer(tx, row));
      return row.server_id;
    },
    removeLeftovers: () => removeLeftovers(),
    waitForEvent: (name, server_id) =>
      waitFor(
        () => emitted.find((event) => event.event === name && 'server_id' in event && event.server_id === server_id),
        `${name} of the server`,
      ),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
