import { startForgetting, startLoop } from '../../platform/loop.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Builds } from '../builds/builds.ts';
import { topics } from '../topics.ts';
import { createEnding } from './ending.ts';
import { createLogCollector } from './log-collector.ts';
import { createPlacement, type PlacementDependencies } from './placement.ts';
import { handleOf, nextStep } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import { createStarting } from './starting.ts';
import * as store from './store.ts';
import type { ServerRow } from './tables.ts';

/**
 * Longest delay until a change without a notification is noticed, such as the end of a process that is not our child.
 */
const EVERY_MS = 500;
/** The time between steps while this machine has no server. A new server wakes the loop, so this bounds a lost notification. */
const EVERY_WITHOUT_SERVERS_MS = 5_000;
const COLLECT_EVERY_MS = 250;
const CLEAN_EVERY_MS = 60_000;
/** Servers that are being started at one time; some of them wait for a large build to be unpacked. */
const STARTS_AT_ONCE_MAX = 64;
/** Servers that are ended in one round. */
const ENDS_AT_ONCE_MAX = 100;
/** How long a server that could not be ended waits for the next round: it must not slow down those of others. */
const END_AGAIN_AFTER_MS = 2_000;

export interface ReconcileDependencies extends PlacementDependencies {
  feed: Feed;
  tokens: Tokens;
  builds: Builds;
  runtime: Runtime;
}

/** Converges this machine's servers to their desired state: takes servers that wait, starts, stops, notes what has ended. */
export function startReconciling(dependencies: ReconcileDependencies, signal: AbortSignal): { stopped: Promise<void> } {
  const { database, clock, events, feed, runtime, logs, node } = dependencies;
  const starting = createStarting(dependencies);
  const ending = createEnding(dependencies);
  /** One step at a time for each server; a slow one (a large build to unpack) does not hold up the others. */
  const in_flight = new Map<string, Promise<void>>();
  let starts_under_way = 0;
  let ends_round: Promise<void> | undefined;
  /** Servers that could not be ended, and when that is tried again, by `performance.now()`. */
  const end_again_at = new Map<string, number>();
  /** Servers that were asked to stop since we started; after a restart they are asked once more. */
  const asked_to_stop = new Set<string>();
  let known: ServerRow[] = [];
  const collectRound = createLogCollector(logs);
  const { takeWaiting } = createPlacement(dependencies);

  async function step(): Promise<number> {
    // What is under way while we read may be over when we decide: what was read of it is old then.
    const busy = new Set(in_flight.keys());
    known = await store.selectOfNode(database.queries, node.node_id);
    const taken = await takeWaiting(known);
    if (taken > 0) known = await store.selectOfNode(database.queries, node.node_id);
    const idle = known.filter(({ server_id }) => !busy.has(server_id));
    return taken + beginSteps(idle, await runtime.observe(idle.map(handleOf)));
  }

  /** Begins the next step of each server. Gives how many. */
  function beginSteps(servers: ServerRow[], observed: Awaited<ReturnType<Runtime['observe']>>): number {
    const over: ServerRow[] = [];
    let begun = 0;
    for (const server of servers) {
      const { server_id } = server;
      const seen = observed.get(server_id);
      if (!seen) continue;
      const next = nextStep(server, seen, { now: clock.now(), was_asked: asked_to_stop.has(server_id) });
      switch (next.do) {
        case 'wait':
          continue;
        case 'stop':
          if (!runtime.stop(handleOf(server))) continue;
          asked_to_stop.add(server_id);
          break;
        case 'start':
        case 'adopt': {
          if (starts_under_way >= STARTS_AT_ONCE_MAX) continue;
          const { process } = next.do === 'adopt' ? next : { process: undefined };
          beginStart(server, next.do, () => (process ? starting.adopt(server, process) : starting.start(server)));
          break;
        }
        case 'kill':
        case 'finish':
          if ((end_again_at.get(server_id) ?? 0) > performance.now()) continue;
          over.push(server);
          continue;
      }
      begun += 1;
    }
    return begun + beginEnds(over);
  }

  function beginStart({ server_id }: ServerRow, name: 'start' | 'adopt', work: () => Promise<void>): void {
    starts_under_way += 1;
    const done = work()
      // What comes next for it was passed over meanwhile. A step that failed is taken again at the next interval.
      .then(loop.wake, (cause: unknown) => events.emit({ event: 'server_step_failed', server_id, step: name, cause }))
      .finally(() => {
        starts_under_way -= 1;
        in_flight.delete(server_id);
      });
    in_flight.set(server_id, done);
  }

  /** Begins a round of ends, unless one is under way: then they are for the next. */
  function beginEnds(over: ServerRow[]): number {
    const round = over.slice(0, ENDS_AT_ONCE_MAX);
    if (ends_round || round.length === 0) return 0;
    ends_round = endAll(round).finally(() => {
      ends_round = undefined;
      for (const { server_id } of round) in_flight.delete(server_id);
      loop.wake();
    });
    for (const { server_id } of round) in_flight.set(server_id, ends_round);
    return round.length;
  }

  async function endAll(round: ServerRow[]): Promise<void> {
    const again = await ending.end(round);
    for (const { server_id } of round) {
      asked_to_stop.delete(server_id);
      end_again_at.delete(server_id);
    }
    for (const { server_id } of again) end_again_at.set(server_id, performance.now() + END_AGAIN_AFTER_MS);
  }

  async function collectLogs(): Promise<number> {
    // What is under way is read to its end there.
    await collectRound(known.filter(({ server_id }) => !in_flight.has(server_id)).flatMap(ending.outputsOf));
    return 0;
  }

  /** Removes what is left of servers that have ended, or that the database does not know: we were killed in between. */
  async function clean(): Promise<number> {
    // Listed before the database is asked: a server has its row before it has anything else.
    const listed = await runtime.list();
    const going = new Set((await store.selectOfNode(database.queries, node.node_id)).map(({ server_id }) => server_id));
    await ending.removeLeftovers(listed.filter(({ server_id }) => !going.has(server_id) && !in_flight.has(server_id)));
    return 0;
  }

  const every = { signal, events };
  const untilNext = () => (known.length > 0 ? EVERY_MS : EVERY_WITHOUT_SERVERS_MS);
  const loop = startLoop({ ...every, name: 'servers', every_ms: untilNext, step });
  const loops = [
    loop,
    startLoop({ ...every, name: 'server-logs', every_ms: COLLECT_EVERY_MS, step: collectLogs }),
    startForgetting({ ...every, name: 'old-logs', forget: logs.forgetOld }),
    startLoop({ ...every, name: 'leftovers', every_ms: CLEAN_EVERY_MS, step: clean }),
  ];
  runtime.onChange(loop.wake);
  const unsubscribe = feed.subscribe(topics.work(node.datacenter_id), loop.wake);

  async function end(): Promise<void> {
    await Promise.all(loops.map(({ stopped }) => stopped));
    unsubscribe();
    await Promise.all(in_flight.values());
  }
  return { stopped: end() };
}
