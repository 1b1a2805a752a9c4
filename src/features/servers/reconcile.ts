import { startDeletingOld, startLoop } from '../../platform/loop.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import { type Feed, wakeOnChange } from '../../platform/watch/feed.ts';
import type { Builds } from '../builds/builds.ts';
import type { Machines } from '../machines/machines.ts';
import { topics } from '../topics.ts';
import { removeAbandoned } from './abandoned.ts';
import { createEnding } from './ending.ts';
import { createLogCollector, logSourcesOf } from './logs/log-collector.ts';
import { shareStarts, takeInTurns } from './placement/fair-shares.ts';
import { createPlacement, type PlacementDependencies } from './placement/placement.ts';
import { handleOf, nextStep, type Remembered } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import { StartAttempts } from './start-attempts.ts';
import { createStarting } from './starting.ts';
import * as store from './store.ts';
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
/** Servers that start at one time, in turns of their namespaces; some wait for a large build to be unpacked. */
const STARTS_AT_ONCE_MAX = 64;
/** Maximum number of servers to end in one round. */
const ENDS_AT_ONCE_MAX = 100;
/** Time before a server that could not be ended is tried again. Until then it does not slow down the rounds of others. */
const END_AGAIN_AFTER_MS = 2_000;
/** Time after which the next round of kills begins, although the one before goes on. */
const KILL_ROUND_MS = 1_000;
/** Time before waiting servers are placed again after a failure. */
const PLACE_AGAIN_AFTER_MS = 2_000;

const NOTHING_REMEMBERED: Remembered = { was_asked: false, reported: undefined };

/** The relays of this machine, which lead players to its servers. */
export interface ServerRelays {
  /** Opens the relays of these servers, and closes all others. Returns the servers whose relays could not be opened. */
  keep(servers: readonly Pick<PlacedServer, 'server_id' | 'game_id' | 'ports'>[]): Promise<ReadonlySet<string>>;
}

export interface ReconcileDependencies extends PlacementDependencies {
  feed: Feed;
  tokens: Tokens;
  builds: Pick<Builds, 'kindOf' | 'unpacked' | 'isUnpacked'>;
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
  const starting = createStarting(dependencies);
  const start_attempts = new StartAttempts(starting, events);
  const ending = createEnding(dependencies);
  /** The current step of each server. A server has one at a time; a slow one (a large build to unpack) delays no other. */
  const steps_under_way = new Map<string, Promise<void>>();
  const starts_under_way = new Set<PlacedServer>();
  /** The kills that are under way. */
  let kill_round: Promise<void> | undefined;
  /** When to try again to end the servers that could not be ended, in the time of `performance.now()`. */
  const end_again_at = new Map<string, number>();
  /**
   * What this process has requested and reported for each server. It is empty after a restart of the service, so each
   * request and report is then repeated once.
   */
  const remembered_by_server = new Map<string, Remembered>();
  let known: PlacedServer[] = [];
  const collectRound = createLogCollector(logs, events);
  const wakeIn = (ms: number) => void setTimeout(() => loop.wake(), ms).unref();
  const { takeWaiting } = createPlacement(dependencies, wakeIn);

  async function step(): Promise<number> {
    // Another process has the servers of this machine, and would see what this one does to them as faults.
    if (machines.isReplaced()) return 0;
    await endDrained();
    // A step under way may end before the decision below, which makes the row of its server out of date.
    const under_way_before = new Set(steps_under_way.keys());
    const had_servers = known.length > 0;
    known = await store.selectOnMachine(database.queries, machine.node_id);
    const taken = await placeWaiting();
    if (taken > 0) known = await store.selectOnMachine(database.queries, machine.node_id);
    if (!had_servers && known.length > 0) collecting.wake();
    forgetEndedElsewhere();
    wakeAtNextKill();
    // Before a server starts, so that its relays are there when its lobby is ready. One without them waits.
    const without_relays = await relays.keep(known);
    const mayStep = ({ server_id, identity, destroyed_at }: PlacedServer) =>
      identity !== null || destroyed_at !== null || !without_relays.has(server_id);
    const idle = known.filter((server) => !under_way_before.has(server.server_id) && mayStep(server));
    return taken + beginSteps(idle, await runtime.observe(idle.map(handleOf)));
  }

  /** When to place servers again after a failure, in the time of `performance.now()`. */
  let place_again_at = 0;

  /** Takes waiting servers. Returns how many it took. A failure delays no step of the servers that the machine has. */
  async function placeWaiting(): Promise<number> {
    if (!takes_servers || place_again_at > performance.now()) return 0;
    try {
      return await takeWaiting(known);
    } catch (cause) {
      place_again_at = performance.now() + PLACE_AGAIN_AFTER_MS;
      events.emit({ event: 'servers_not_placed', cause });
      wakeIn(PLACE_AGAIN_AFTER_MS);
      return 0;
    }
  }

  /** Forgets the servers that another process has ended, for instance because it declared this machine lost. */
  function forgetEndedElsewhere(): void {
    const known_ids = new Set(known.map(({ server_id }) => server_id));
    const isKept = (server_id: string) => known_ids.has(server_id) || steps_under_way.has(server_id);
    for (const remembered of [remembered_by_server, end_again_at]) {
      for (const server_id of remembered.keys()) if (!isKept(server_id)) remembered.delete(server_id);
    }
    start_attempts.keepOnly(isKept);
  }

  /** The time of a kill for which a step was requested. */
  let awaited_kill = 0;

  /** Requests a step when the next kill timeout is over, unless that was done. */
  function wakeAtNextKill(): void {
    const now = clock.now().getTime();
    const later = known.flatMap(({ kill_at }) => (kill_at && kill_at.getTime() > now ? kill_at.getTime() : []));
    const next = Math.min(...later);
    if (later.length === 0 || next === awaited_kill) return;
    awaited_kill = next;
    wakeIn(next - now + 1);
  }

  /** Requests the end of this machine's servers without a lobby once the deadline of its drain is over. */
  async function endDrained(): Promise<void> {
    const drain = machines.draining().find(({ node_id }) => node_id === machine.node_id);
    if (!drain?.is_deadline_over || !known.some((one) => !one.token_caller && !one.destroyed_at)) return;
    await database.transact((tx) => store.destroyWithoutLobby(tx, machine.node_id, clock.now()));
  }

  /** Begins the next step of each server. Returns how many steps it began. */
  function beginSteps(servers: PlacedServer[], observed: Awaited<ReturnType<Runtime['observe']>>): number {
    const to_end: PlacedServer[] = [];
    const starts = new Map<PlacedServer, () => void>();
    let begun = 0;
    for (const server of servers) {
      const { server_id } = server;
      const seen = observed.get(server_id);
      if (!seen) continue;
      const remembered = remembered_by_server.get(server_id) ?? NOTHING_REMEMBERED;
      const next = nextStep(server, seen, { now: clock.now(), ...remembered });
      switch (next.do) {
        case 'wait':
          continue;
        case 'report':
          begin(server, next.do, async () => {
            await starting.report(server, next.reason);
            remembered_by_server.set(server_id, { ...remembered, reported: next.reason });
          });
          break;
        case 'stop':
          begin(server, next.do, async () => {
            const was_asked = await runtime.stop(handleOf(server));
            remembered_by_server.set(server_id, { ...remembered, was_asked });
          });
          break;
        case 'start':
          if (!start_attempts.isDue(server_id)) continue;
          starts.set(server, () => beginStart(server, next.do, () => start_attempts.start(server)));
          continue;
        case 'adopt':
          starts.set(server, () => beginStart(server, next.do, () => starting.adopt(server, next.started)));
          continue;
        case 'kill':
        case 'finish':
          if ((end_again_at.get(server_id) ?? 0) > performance.now()) continue;
          to_end.push(server);
          continue;
      }
      begun += 1;
    }
    const limits = { under_way: [...starts_under_way], starts_max: STARTS_AT_ONCE_MAX };
    const to_start = shareStarts([...starts.keys()], limits);
    for (const server of to_start) starts.get(server)?.();
    return begun + to_start.length + beginEnds(to_end);
  }

  function beginStart(server: PlacedServer, name: 'start' | 'adopt', work: () => Promise<boolean>): void {
    starts_under_way.add(server);
    let is_recorded = true;
    const start = async () => {
      try {
        is_recorded = await work();
      } finally {
        starts_under_way.delete(server);
      }
    };
    // Wakes the loop, which skipped this server meanwhile. A server without a record is a leftover.
    begin(server, name, start, () => (is_recorded ? loop : cleaning).wake());
  }

  /** Begins a step, and calls `onSuccess` after it. One that fails is repeated at the next interval. */
  function begin({ server_id }: PlacedServer, name: string, work: () => Promise<void>, onSuccess = () => {}): void {
    async function run(): Promise<void> {
      let has_failed = false;
      try {
        await work();
      } catch (cause) {
        has_failed = true;
        events.emit({ event: 'server_step_failed', server_id, step: name, cause });
      }
      steps_under_way.delete(server_id);
      if (!has_failed) onSuccess();
    }
    steps_under_way.set(server_id, run());
  }

  /**
   * Kills servers together, in turns of their namespaces, unless such kills have just begun. Then these servers wait for
   * the next round. A round that takes long, because of a server that does not die, goes on beside the next ones. Each
   * server is finished as soon as it is gone, so that none of them delays another.
   */
  function beginEnds(to_end: PlacedServer[]): number {
    if (kill_round || to_end.length === 0) return 0;
    const round = takeInTurns(to_end, ENDS_AT_ONCE_MAX);
    const kill = ending.kill(round, { onGone, onFailure }).finally(loop.wake);
    for (const { server_id } of round) steps_under_way.set(server_id, kill);
    kill_round = Promise.race([kill, Bun.sleep(KILL_ROUND_MS)]).finally(() => {
      kill_round = undefined;
      loop.wake();
    });
    return round.length;
  }

  function onGone(end: PlacedServer): void {
    steps_under_way.delete(end.server_id);
    postponeEnd(end);
    begin(end, 'finish', () => finish(end), loop.wake);
  }

  function onFailure(server: PlacedServer): void {
    steps_under_way.delete(server.server_id);
    postponeEnd(server);
  }

  async function finish(end: PlacedServer): Promise<void> {
    try {
      await ending.finish(end);
    } finally {
      postponeEnd(end);
    }
  }

  /** Sets the earliest time at which a server is ended again, in case it has not ended. */
  function postponeEnd({ server_id }: PlacedServer): void {
    end_again_at.set(server_id, performance.now() + END_AGAIN_AFTER_MS);
  }

  async function collectLogs(): Promise<number> {
    // Skips servers with a step under way, because the step that ends a server collects the rest of its output.
    const idle = known.filter(({ server_id }) => !steps_under_way.has(server_id));
    await collectRound(idle.flatMap((server) => logSourcesOf(runtime, server)));
    return 0;
  }

  /** Removes what is left of servers that have ended or have no row, because the service was killed between two steps. */
  async function clean(): Promise<number> {
    if (machines.isReplaced()) return 0;
    const selectIds = async () =>
      new Set((await store.selectOnMachine(database.queries, machine.node_id)).map(({ server_id }) => server_id));
    // A server that ends while it is listed is no leftover, but has neither a row nor a step afterwards.
    const known_before = await selectIds();
    const under_way_before = new Set(steps_under_way.keys());
    // Lists before the second query: a server has a row before it has files, so without a row it is a leftover.
    const listed = await runtime.list();
    const not_leftovers = [known_before, under_way_before, await selectIds(), steps_under_way];
    try {
      await ending.removeLeftovers(listed.filter(({ server_id }) => !not_leftovers.some((ids) => ids.has(server_id))));
    } finally {
      await removeAbandoned(dependencies);
    }
    return 0;
  }

  const shared = { signal, events };
  const withServers = (every_ms: number) => () => (known.length > 0 ? every_ms : EVERY_WITHOUT_SERVERS_MS);
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
  runtime.onChange(loop.wake);
  machines.onDeclaredLost(async () => {
    known = await store.selectOnMachine(database.queries, machine.node_id);
    await relays.keep(known);
    // `clean` skips the servers that are being started. When their starts end, they find that the server has ended, and
    // wake `cleaning`.
    await clean();
    loop.wake();
  });
  wakeOnChange(loop, { feed, topics: [topics.work(machine.datacenter_id)], signal });

  async function end(): Promise<void> {
    await Promise.all(loops.map(({ stopped }) => stopped));
    // A kill is followed by the step that finishes the server.
    while (steps_under_way.size > 0) await Promise.all(steps_under_way.values());
  }
  return { listServers: () => known, stopped: end() };
}
