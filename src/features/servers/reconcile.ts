import { startDeletingOld, startLoop } from '../../platform/loop.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import { type Feed, wakeOnChange } from '../../platform/watch/feed.ts';
import type { Builds } from '../builds/builds.ts';
import type { Machines } from '../machines/machines.ts';
import { topics } from '../topics.ts';
import { ConcurrentStarts, type Start } from './concurrent-starts.ts';
import { destroyWithoutLobby } from './destroy-store.ts';
import { createEnding } from './ending.ts';
import { KillRounds } from './kill-rounds.ts';
import { removeLeftovers } from './leftovers.ts';
import { createLogCollector, logSourcesOf } from './logs/log-collector.ts';
import { createPlacement, type PlacementDependencies } from './placement/placement.ts';
import { handleOf, nextStep, type Remembered } from './rules.ts';
import type { Observation, Runtime } from './runtimes/runtime.ts';
import { ServerSteps } from './server-steps.ts';
import { StartAttempts } from './start-attempts.ts';
import { createStarting } from './starting.ts';
import { selectOnMachine } from './store.ts';
import type { PlacedServer } from './tables.ts';

/**
 * Longest delay until a change without a notification is noticed, such as the end of a process that an earlier start of
 * the service started.
 */
const EVERY_MS = 500;
/** Interval while this machine has no server. A new server wakes the loop, unless the notification is lost. */
const EVERY_WITHOUT_SERVERS_MS = 5_000;
const COLLECT_EVERY_MS = 250;
const CLEAN_EVERY_MS = 60_000;

const NOTHING_REMEMBERED: Remembered = { was_stop_requested: false, reported: undefined };

/** The relays of this machine, which lead players to its servers. */
export interface ServerRelays {
  /** Opens the relays of these servers, and closes all others. Returns the servers whose relays could not be opened. */
  openOnly(servers: readonly Pick<PlacedServer, 'server_id' | 'game_id' | 'ports'>[]): Promise<ReadonlySet<string>>;
}

export interface ReconcileDependencies extends PlacementDependencies {
  feed: Feed;
  tokens: Tokens;
  builds: Pick<Builds, 'kindOf' | 'ensureUnpacked' | 'isUnpacked'>;
  runtime: Runtime;
  relays: ServerRelays;
  /** Whether this machine takes waiting servers. Otherwise the cluster of this process does. */
  takes_servers: boolean;
  unrecorded_failures?: Map<string, string>;
  whileHeld?: Parameters<typeof createEnding>[0]['whileHeld'];
  machines: Pick<
    Machines,
    | 'lockHeld'
    | 'areAllDraining'
    | 'isReplaced'
    | 'draining'
    | 'onDeclaredLost'
    | 'machinesThatRemoveNoPods'
    | 'isOtherSeenTakingServers'
  >;
}

export interface Reconciling {
  /** Returns this machine's servers as they were read last. */
  listServers(): readonly PlacedServer[];
  stopped: Promise<void>;
}

/**
 * Converges this machine's servers to their desired state: takes waiting servers, starts and stops servers, and records
 * how they ended.
 */
export function startReconciling(dependencies: ReconcileDependencies, signal: AbortSignal): Reconciling {
  const { database, clock, events, feed, runtime, logs, machine, relays, machines, takes_servers } = dependencies;
  const wake = () => loop.wake();
  const wakeIn = (ms: number) => void setTimeout(wake, ms).unref();
  const starting = createStarting(dependencies);
  const start_attempts = new StartAttempts(starting, events);
  const ending = createEnding(dependencies);
  const steps = new ServerSteps(events);
  // A server that was started without a record is a leftover.
  const starts = new ConcurrentStarts({ steps, onEnded: wake, onLeftover: () => cleaning.wake() });
  const kill_rounds = new KillRounds({ clock, ending, steps, wake, wakeIn });
  const { takeWaiting } = createPlacement(dependencies, wakeIn);
  const collectRound = createLogCollector(logs, events);
  /** This machine's servers as they were read last. */
  let servers: PlacedServer[] = [];
  /**
   * What this process has requested and reported for each server. It is empty after a restart of the service, so each
   * request and report is then repeated once.
   */
  const remembered_by_server = new Map<string, Remembered>();

  async function step(): Promise<number> {
    // Another process has the servers of this machine, and would see what this one does to them as faults.
    if (machines.isReplaced()) return 0;
    await endDrained();
    // A step under way may end before the decision below, which makes the row of its server out of date.
    const under_way_before = steps.serverIds();
    const had_servers = servers.length > 0;
    servers = await readServers();
    const taken = takes_servers ? await takeWaiting(servers) : 0;
    if (taken > 0) servers = await readServers();
    if (!had_servers && servers.length > 0) collecting.wake();
    forgetGone();
    kill_rounds.awaitNext(servers);
    // Before a server starts, so that its relays are there when its lobby is ready. One without them waits.
    const without_relays = await relays.openOnly(servers);
    const mayStep = ({ server_id, identity, destroyed_at }: PlacedServer) =>
      identity !== null || destroyed_at !== null || !without_relays.has(server_id);
    const idle = servers.filter((server) => !under_way_before.has(server.server_id) && mayStep(server));
    return taken + beginSteps(idle, await runtime.observe(idle.map(handleOf)));
  }

  /** Requests the end of this machine's servers without a lobby once the deadline of its drain is over. */
  async function endDrained(): Promise<void> {
    const drain = machines.draining().find(({ node_id }) => node_id === machine.node_id);
    const endsWithDrain = ({ token_caller, destroyed_at }: PlacedServer) => !token_caller && !destroyed_at;
    if (!drain?.is_deadline_over || !servers.some(endsWithDrain)) return;
    await database.transact((tx) => destroyWithoutLobby(tx, machine.node_id, clock.now()));
  }

  const readServers = () => selectOnMachine(database.queries, machine.node_id);

  /** Forgets the servers that this machine no longer has: they have ended, here or because it was declared lost. */
  function forgetGone(): void {
    const server_ids = new Set(servers.map(({ server_id }) => server_id));
    const isKept = (server_id: string) => server_ids.has(server_id) || steps.has(server_id);
    for (const server_id of remembered_by_server.keys()) {
      if (!isKept(server_id)) remembered_by_server.delete(server_id);
    }
    kill_rounds.keepOnly(isKept);
    start_attempts.keepOnly(isKept);
  }

  /** Begins the next step of each server. Returns how many steps it began. */
  function beginSteps(idle: PlacedServer[], observations: ReadonlyMap<string, Observation>): number {
    const to_start = new Map<PlacedServer, Start>();
    const to_end: PlacedServer[] = [];
    let begun = 0;
    for (const server of idle) {
      const { server_id } = server;
      const observation = observations.get(server_id);
      if (!observation) continue;
      const next = nextStep(server, observation, { now: clock.now(), ...rememberedOf(server) });
      switch (next.do) {
        case 'wait':
          break;
        case 'report':
          beginReport(server, next.reason);
          begun += 1;
          break;
        case 'stop':
          beginStop(server);
          begun += 1;
          break;
        case 'start':
          if (!start_attempts.isDue(server_id)) break;
          to_start.set(server, { name: 'start', work: () => start_attempts.start(server) });
          break;
        case 'adopt':
          to_start.set(server, { name: 'adopt', work: () => starting.adopt(server, next.accepted) });
          break;
        case 'kill':
        case 'finish':
          if (!kill_rounds.isPostponed(server_id)) to_end.push(server);
          break;
      }
    }
    return begun + starts.begin(to_start) + kill_rounds.begin(to_end);
  }

  const rememberedOf = ({ server_id }: PlacedServer) => remembered_by_server.get(server_id) ?? NOTHING_REMEMBERED;

  function remember(server: PlacedServer, change: Partial<Remembered>): void {
    remembered_by_server.set(server.server_id, { ...rememberedOf(server), ...change });
  }

  function beginReport(server: PlacedServer, reason: string): void {
    steps.begin(server, 'report', async () => {
      await starting.report(server, reason);
      remember(server, { reported: reason });
    });
  }

  function beginStop(server: PlacedServer): void {
    steps.begin(server, 'stop', async () => {
      remember(server, { was_stop_requested: await runtime.stop(handleOf(server)) });
    });
  }

  async function collectLogs(): Promise<number> {
    // Skips servers with a step under way, because the step that ends a server collects the rest of its output.
    const idle = servers.filter(({ server_id }) => !steps.has(server_id));
    await collectRound(idle.flatMap((server) => logSourcesOf(runtime, server)));
    return 0;
  }

  async function clean(): Promise<number> {
    if (!machines.isReplaced()) await removeLeftovers({ ...dependencies, ending, steps });
    return 0;
  }

  const shared = { signal, events };
  const withServers = (every_ms: number) => () => (servers.length > 0 ? every_ms : EVERY_WITHOUT_SERVERS_MS);
  const loop = startLoop({ ...shared, name: 'servers', every_ms: withServers(EVERY_MS), step });
  const collecting = startLoop({
    ...shared,
    name: 'server-logs',
    every_ms: withServers(COLLECT_EVERY_MS),
    step: collectLogs,
  });
  const cleaning = startLoop({ ...shared, name: 'leftovers', every_ms: CLEAN_EVERY_MS, step: clean });
  const loops = [
    loop,
    collecting,
    cleaning,
    startDeletingOld({ ...shared, name: 'old-logs', deleteOld: logs.deleteOld }),
  ];
  runtime.onChange(wake);
  machines.onDeclaredLost(async () => {
    servers = await readServers();
    await relays.openOnly(servers);
    // `clean` skips the servers that are being started. When their starts end, they find that the server has ended, and
    // wake `cleaning`.
    await clean();
    wake();
  });
  wakeOnChange(loop, { feed, topics: [topics.work(machine.datacenter_id)], signal });

  async function end(): Promise<void> {
    await Promise.all(loops.map(({ stopped }) => stopped));
    await steps.allEnded();
  }
  return { listServers: () => servers, stopped: end() };
}
