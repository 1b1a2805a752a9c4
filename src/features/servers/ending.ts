import type { Clock } from '../../platform/clock.ts';
import type { Database, Queries } from '../../platform/database/database.ts';
import { toServiceError } from '../../platform/database/failures.ts';
import { assert } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { SlotQueue } from '../../platform/limits/slot-queue.ts';
import { forEachAtOnce } from '../../platform/pacing.ts';
import { createRounds } from '../../platform/rounds.ts';
import { describeEnd, hasCrashed } from './end-description.ts';
import { setEnded } from './ends-store.ts';
import { logSourcesOf } from './logs/log-collector.ts';
import { type Logs, PIECE_BYTES_MAX } from './logs/logs.ts';
import { planRestart } from './restarts.ts';
import { handleOf, nextStep } from './rules.ts';
import { BACKLOG_BYTES_MAX, type Runtime, type ServerHandle } from './runtimes/runtime.ts';
import { selectEndRequests } from './store.ts';
import type { PlacedServer } from './tables.ts';

/** Maximum number of servers that are retried alone, after a step failed that was taken for all of them. */
const ALONE_AT_ONCE_MAX = 8;
/**
 * Limits how many servers at one time have their last output read, and how many have their files removed. No more can
 * wait than the machine has servers.
 */
const SHARED_BY_GAMES = { at_once: 8, waiting_max: Number.POSITIVE_INFINITY };
/** Maximum number of ends in one statement, and of those that wait for it: more than a machine has servers. */
const RECORDS = { round_max: 100, waiting_max: 100_000 };
/** How long the last output of a server may take. A hostile pod answers slowly, and must not hold up the others. */
const LAST_OUTPUT_MS = 10_000;
/** Pieces of each stream to collect at the end of a server: enough for the unread output that is kept, in whole lines. */
const LAST_PIECES_MAX = 2 * (BACKLOG_BYTES_MAX / PIECE_BYTES_MAX);

interface EndingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  runtime: Runtime;
  logs: Logs;
  /** Why servers were ended while the database could not record it. */
  unrecorded_failures?: Map<string, string>;
  /** Runs a statement that only the holder of the machine may run. By default no other process can be the holder. */
  whileHeld?: ((work: (queries: Queries) => Promise<Map<string, string>>) => Promise<Map<string, string>>) | undefined;
}

export type Ending = ReturnType<typeof createEnding>;

/** Reports a server whose step failed. The others go on, and it is tried again later. */
type Fail = (server: Pick<PlacedServer, 'server_id'>, cause: unknown) => void;

/** Is notified once of each server to kill. */
export interface KillListener {
  /** Called with the row of a server as soon as it is gone, with how it ended. */
  onGone(end: PlacedServer): void;
  /** Called with a server that could not be killed, or whose end could not be observed. It is to be tried again. */
  onFailure(server: PlacedServer): void;
}

/** The row of a killed server with how it ended, or why that could not be observed. */
type ObservedEnd = { end: PlacedServer } | { failure: unknown };

/** The result of recording an end. */
type RecordResult = { restarted_as: string | undefined } | { failure: unknown };

/**
 * Creates the steps that end servers of this machine. Servers that end at the same time share the scan of the processes
 * and the statement that records their ends. Output and files may take long, so they are handled for each server alone.
 */
export function createEnding(dependencies: EndingDependencies) {
  const { database, clock, events, runtime, logs, unrecorded_failures = new Map<string, string>() } = dependencies;
  const { whileHeld = (work) => work(database.queries) } = dependencies;
  const output_slots = new SlotQueue(SHARED_BY_GAMES);
  const removal_slots = new SlotQueue(SHARED_BY_GAMES);
  const observeEnd = createRounds({ ...RECORDS, work: observeEnds });
  const record = createRounds({ ...RECORDS, work: recordAll });

  const failAt =
    (step: 'kill' | 'remove'): Fail =>
    ({ server_id }, cause) =>
      events.emit({ event: 'server_step_failed', server_id, step, cause });

  /** Kills servers and everything that they started. Notifies `listener` of each as soon as it is gone. */
  async function kill(servers: PlacedServer[], listener: KillListener): Promise<void> {
    const left = new Map(servers.map((server) => [server.server_id, server]));
    const observations: Promise<void>[] = [];
    function removeFromLeft(server_id: string): PlacedServer | undefined {
      const server = left.get(server_id);
      left.delete(server_id);
      return server;
    }
    function fail(server: PlacedServer, cause: unknown): void {
      failAt('kill')(server, cause);
      listener.onFailure(server);
    }
    const failIfLeft: Fail = ({ server_id }, cause) => {
      const server = removeFromLeft(server_id);
      if (server) fail(server, cause);
    };
    async function observeGone(server: PlacedServer): Promise<void> {
      const observed = await observeEnd(server).catch((failure: unknown): ObservedEnd => ({ failure }));
      if ('end' in observed) listener.onGone(observed.end);
      else fail(server, observed.failure);
    }
    try {
      await killTogether(servers.map(handleOf), failIfLeft, (server_id) => {
        const server = removeFromLeft(server_id);
        if (server) observations.push(observeGone(server));
      });
    } catch (cause) {
      for (const server of left.values()) failIfLeft(server, cause);
    }
    await Promise.all(observations);
  }

  /** Kills servers and everything that they started. Calls `onGone` with each that has ended, as soon as it has. */
  async function killTogether(servers: ServerHandle[], fail: Fail, onGone: (server_id: string) => void): Promise<void> {
    await doTogether(servers, fail, async (some) => {
      const gone = await runtime.kill(some, onGone);
      for (const server of some.filter(({ server_id }) => !gone.has(server_id))) fail(server, new Error(NOT_GONE));
    });
  }

  /** Returns for each killed server its row with how it ended, in their order. */
  async function observeEnds(servers: PlacedServer[]): Promise<ObservedEnd[]> {
    const ends = new Map<string, ObservedEnd>();
    const fail: Fail = ({ server_id }, failure) => void ends.set(server_id, { failure });
    await doTogether(servers, fail, async (some) => {
      const observations = await runtime.observe(some.map(handleOf));
      // After that: what has ended a server is recorded before it ends, so these rows say why.
      const requests = await selectEndRequests(
        database.queries,
        some.map(({ server_id }) => server_id),
      );
      for (const row of some) {
        const server = withFailure({ ...row, ...requests.get(row.server_id) });
        const observation = observations.get(server.server_id);
        const memory = { now: clock.now(), was_stop_requested: true, reported: undefined };
        const next = observation && nextStep(server, observation, memory);
        if (next?.do === 'finish') {
          ends.set(server.server_id, { end: { ...server, ...next } });
        } else {
          const state = observation?.is ?? 'unknown';
          fail(server, new Error(`the server was killed, but its machine reports it as ${state}`));
        }
      }
    });
    return servers.map(({ server_id }) => {
      const end = ends.get(server_id);
      assert(end, 'the end of a killed server was observed, or that failed');
      return end;
    });
  }

  /** Returns a server as it would be recorded if the database had taken why it was ended. */
  function withFailure(server: PlacedServer): PlacedServer {
    const failure = unrecorded_failures.get(server.server_id);
    if (failure === undefined) return server;
    return { ...server, failure, destroyed_at: server.destroyed_at ?? clock.now() };
  }

  /** Collects the rest of a server's output. After a crash or a loss, the last line says how the server ended. */
  async function keepOutput(end: PlacedServer): Promise<void> {
    const { server_id, failure } = end;
    // A hostile pod always has more, and its end must not hold up the others of the round.
    const give_up_at = performance.now() + LAST_OUTPUT_MS;
    const isAllowed = (piece: number) => piece < LAST_PIECES_MAX && performance.now() < give_up_at;
    for (let piece = 0; isAllowed(piece) && (await collect(end)); piece += 1);
    if (!hasCrashed(end) && !end.has_lost_machine) return;
    const text = failure ?? `the server ${describeEnd(end)}`;
    await logs.addLastLine({ server_id, stream: 'std_err' }, `[muster] ${text}`);
  }

  /**
   * Finishes a killed server: collects its output, records its end, removes its files. Each part may be repeated. Throws if
   * the end is not recorded.
   */
  async function finish(end: PlacedServer): Promise<void> {
    const { server_id, game_id, exit_code, exit_signal, failure } = end;
    await output_slots.run(game_id, () => keepOutput(end));
    const recorded = await record(end);
    if ('failure' in recorded) throw recorded.failure;
    unrecorded_failures.delete(server_id);
    const crash = hasCrashed(end) ? { crash: `it ${describeEnd(end)}` } : {};
    const { restarted_as } = recorded;
    const restarted = restarted_as === undefined ? {} : { restarted_as };
    // A later step removes what remains as a leftover.
    await removal_slots.run(game_id, () => removeFilesOf(server_id));
    events.emit({ event: 'server_ended', server_id, exit_code, exit_signal, failure, ...crash, ...restarted });
  }

  /** Records ends in one statement. Returns for each whether it was recorded, in their order. */
  async function recordAll(ends: PlacedServer[]): Promise<RecordResult[]> {
    const failures = new Map<string, unknown>();
    const restarts = new Map<string, string>();
    const fail: Fail = ({ server_id }, cause) => void failures.set(server_id, cause);
    await doTogether(ends, fail, async (some) => {
      const now = clock.now();
      const with_restarts = some.map((end) => ({ ...end, restart: planRestart(end, now) }));
      const recorded = await whileHeld((queries) => setEnded(queries, with_restarts, now));
      for (const [server_id, restart_id] of recorded) restarts.set(server_id, restart_id);
    });
    return ends.map(({ server_id }) =>
      failures.has(server_id) ? { failure: failures.get(server_id) } : { restarted_as: restarts.get(server_id) },
    );
  }

  /** Returns false and logs the cause if the files of a server cannot be removed, so that other servers still end. */
  async function removeFilesOf(server_id: string): Promise<boolean> {
    try {
      await runtime.remove(server_id);
      return true;
    } catch (cause) {
      failAt('remove')({ server_id }, cause);
      return false;
    }
  }

  /** Moves one piece of each stream into the database. Returns whether there may be more. */
  async function collect(server: Pick<PlacedServer, 'server_id' | 'identity'>): Promise<boolean> {
    const collected = await Promise.all(
      logSourcesOf(runtime, server).map(({ name, read }) => logs.collect(name, read, true)),
    );
    return collected.some(({ has_more }) => has_more);
  }

  return {
    kill,
    finish,
    /**
     * Ends servers that the database does not know, and removes their files. At the end, throws the first failure to end one.
     */
    async endLeftovers(leftovers: ServerHandle[]): Promise<void> {
      const failures: unknown[] = [];
      const fail: Fail = (server, cause) => {
        failAt('kill')(server, cause);
        failures.push(cause);
      };
      const gone = new Set<string>();
      await killTogether(leftovers, fail, (server_id) => gone.add(server_id));
      for (const server_id of gone) {
        if (await removeFilesOf(server_id)) events.emit({ event: 'server_leftover_removed', server_id });
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}

const NOT_GONE = 'processes of the server still run, or its container engine or cluster does not answer';

/**
 * Does something to all servers at once. If that fails, does it to each alone, so that a server that fails holds up no
 * other. Throws a failure of the database, which concerns them all.
 */
async function doTogether<Server extends Pick<PlacedServer, 'server_id'>>(
  servers: Server[],
  fail: Fail,
  work: (some: Server[]) => Promise<void>,
): Promise<void> {
  const [first, ...others] = servers;
  if (!first) return;
  try {
    await work(servers);
  } catch (cause) {
    if (toServiceError(cause)) throw cause;
    if (others.length === 0) return fail(first, cause);
    await forEachAtOnce(servers, ALONE_AT_ONCE_MAX, (server) => doTogether([server], fail, work));
  }
}
