import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { toServiceError } from '../../platform/database/failures.ts';
import type { Events } from '../../platform/events.ts';
import { startLoop } from '../../platform/loop.ts';
import type { ProcessIdentity } from '../../platform/processes.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Builds } from '../builds/builds.ts';
import { topics } from '../topics.ts';
import type { Logs } from './logs.ts';
import { type Node, takeWaiting } from './placement.ts';
import { nextStep, portVariables, type Step, serviceVariables } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';
import { LOG_STREAMS, type ServerRow } from './tables.ts';

/** How long at most until something is noticed that nobody told us of: that a process which is not our child ended. */
const EVERY_MS = 500;
const COLLECT_EVERY_MS = 250;
const FORGET_EVERY_MS = 60_000;
const CLEAN_EVERY_MS = 60_000;

export interface ReconcileDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  feed: Feed;
  tokens: Tokens;
  builds: Builds;
  runtime: Runtime;
  logs: Logs;
  node: Node;
}

/** Makes what is so what is wanted, on this machine: takes servers that wait, starts, stops, notes what has ended. */
export function startReconciling(dependencies: ReconcileDependencies, signal: AbortSignal): { stopped: Promise<void> } {
  const { database, clock, events, feed, tokens, builds, runtime, logs, node } = dependencies;
  /** One step at a time for each server; a slow one (a large build to unpack) does not hold up the others. */
  const in_flight = new Map<string, Promise<void>>();
  /** Those that were asked to stop since we started; after a restart they are asked once more. */
  const asked_to_stop = new Set<string>();
  let known: ServerRow[] = [];

  async function step(): Promise<number> {
    // What is under way while we read may be over when we decide: what was read of it is old then.
    const busy = new Set(in_flight.keys());
    known = await store.selectOfNode(database.queries, node.node_id);
    const taken = await takeWaiting(dependencies, known);
    if (taken > 0) known = await store.selectOfNode(database.queries, node.node_id);
    let mended = taken;
    for (const server of known) {
      if (busy.has(server.server_id)) continue;
      const was_asked = asked_to_stop.has(server.server_id);
      const next = nextStep(server, runtime.observe(handleOf(server)), { now: clock.now(), was_asked });
      if (next.do === 'wait') continue;
      mended += 1;
      begin(server, next);
    }
    return mended;
  }

  function begin(server: ServerRow, next: Exclude<Step, { do: 'wait' }>): void {
    const { server_id } = server;
    const work = perform(server, next)
      // What comes next for it was passed over meanwhile. A step that failed is taken again at the next interval.
      .then(loop.wake, (cause: unknown) =>
        events.emit({ event: 'server_step_failed', server_id, step: next.do, cause }),
      )
      .finally(() => in_flight.delete(server_id));
    in_flight.set(server_id, work);
  }

  async function perform(server: ServerRow, next: Exclude<Step, { do: 'wait' }>): Promise<void> {
    const { server_id } = server;
    switch (next.do) {
      case 'start':
        return await start(server);
      case 'adopt': {
        const started_at = server.started_at ?? clock.now();
        await database.transact((tx) => store.setStarted(tx, server, { process: next.process, started_at }));
        return events.emit({ event: 'server_adopted', server_id, process_id: next.process.pid });
      }
      case 'stop':
        asked_to_stop.add(server_id);
        return runtime.stop(handleOf(server));
      case 'kill':
        return await runtime.kill(handleOf(server));
      case 'finish':
        return await finish(server, next);
    }
  }

  async function start(server: ServerRow): Promise<void> {
    const { server_id } = server;
    const process = await launch(server);
    if (!process) return;
    // When this fails it is adopted in the next step.
    await database.transact((tx) => store.setStarted(tx, server, { process, started_at: clock.now() }));
    const ports = Object.values(server.ports).flatMap(({ public_port }) => public_port ?? []);
    events.emit({ event: 'server_started', server_id, process_id: process.pid, ports });
  }

  /** Its process; undefined when it cannot be started, which is noted. Throws what may be better the next time. */
  async function launch(server: ServerRow): Promise<ProcessIdentity | undefined> {
    const { server_id, game_id, user_id, ports } = server;
    try {
      // Whether it may run here was decided when it was created.
      const build = await builds.unpacked({ game_id }, server.build_id);
      return await runtime.start({
        server_id,
        build,
        arguments: server.arguments,
        environment: { ...server.environment, ...(await ownVariables(server)), ...portVariables(ports) },
        user_id: user_id ?? undefined,
      });
    } catch (cause) {
      const { status, message } = toServiceError(cause) ?? { status: 500, message: sentenceOf(cause) };
      if (status === 503) throw cause;
      events.emit({ event: 'server_step_failed', server_id, step: 'start', cause });
      await database.transact((tx) => store.setFailed(tx, server, message, clock.now()));
      return undefined;
    }
  }

  /** What a server is told of itself and of us; the deprecated names are for servers of the field's early days. */
  async function ownVariables({ service_environment, token_caller }: ServerRow): Promise<Record<string, string>> {
    const own = { ...service_environment, API_ENDPOINT: node.api_url };
    if (!token_caller) return serviceVariables(own);
    const token = await tokens.issue(token_caller);
    const deprecated = { LOBBY_TOKEN: token, MATCHMAKER_API_URL: `${node.api_url}/v1` };
    return serviceVariables({ ...own, TOKEN: token, ...deprecated });
  }

  /** Nothing of it is left, all it wrote is kept: then it has ended. Each part may be repeated. */
  async function finish(server: ServerRow, end: Extract<Step, { do: 'finish' }>): Promise<void> {
    const { server_id } = server;
    const { exit_code, exit_signal, failure } = end;
    await runtime.kill(handleOf(server));
    while (await collect(server, true));
    if (failure !== null) await logs.addLine({ server_id, stream: 'std_err' }, `[muster] ${failure}`);
    await database.transact((tx) => store.setEnded(tx, server, { exit_code, exit_signal, failure }, clock.now()));
    await runtime.remove(handleOf(server));
    asked_to_stop.delete(server_id);
    events.emit({ event: 'server_ended', server_id, exit_code, exit_signal, failure });
  }

  /** One piece of each stream. Gives whether there may be more. */
  async function collect({ server_id }: ServerRow, has_ended: boolean): Promise<boolean> {
    const more = LOG_STREAMS.map((stream) =>
      logs.collect({ server_id, stream }, runtime.outputFile(server_id, stream), has_ended),
    );
    return (await Promise.all(more)).includes(true);
  }

  async function collectAll(): Promise<number> {
    // What is under way is read to its end there.
    const writing = known.filter(({ server_id }) => !in_flight.has(server_id));
    const more = await Promise.all(writing.map((server) => collect(server, false)));
    // In rounds: one that writes without end does not hold up the others.
    if (more.includes(true)) log_loop.wake();
    return 0;
  }

  /** Removes what is left of servers that nobody knows, or that have ended: we were killed in between. */
  async function clean(): Promise<number> {
    // Listed before they are asked for: a server has its row before it has anything else.
    const listed = await runtime.list();
    const going = new Set((await store.selectOfNode(database.queries, node.node_id)).map(({ server_id }) => server_id));
    const left = listed.filter((server_id) => !going.has(server_id) && !in_flight.has(server_id));
    for (const server_id of left) {
      await runtime.remove({ server_id, process: undefined, user_id: undefined });
      events.emit({ event: 'server_leftover_removed', server_id });
    }
    return 0;
  }

  const every = { signal, events };
  const loop = startLoop({ ...every, name: 'servers', every_ms: EVERY_MS, step });
  const log_loop = startLoop({ ...every, name: 'server-logs', every_ms: COLLECT_EVERY_MS, step: collectAll });
  const loops = [
    loop,
    log_loop,
    startLoop({ ...every, name: 'old-logs', every_ms: FORGET_EVERY_MS, step: logs.forgetOld }),
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

function handleOf({ server_id, process: identity, user_id }: ServerRow) {
  return { server_id, process: identity ?? undefined, user_id: user_id ?? undefined };
}

/** Why a server cannot run, for its developer; the whole of it, which may name our files, is for the log. */
function sentenceOf(error: unknown): string {
  const reason = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
  return `the machine could not start it${reason}: tell whoever runs it`;
}
