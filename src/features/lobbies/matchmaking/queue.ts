import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { isTaken } from '../../../platform/database/failures.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import type { Patience } from '../../../platform/http/time-limits.ts';
import { startLoop } from '../../../platform/loop.ts';
import type { Soon } from '../../../platform/soon.ts';
import type { Watchable } from '../../../platform/watch/views.ts';
import type { Watch } from '../../../platform/watch/watch.ts';
import type { Namespaces } from '../../namespaces/namespaces.ts';
import { topics } from '../../topics.ts';
import * as store from '../queue-store.ts';
import { type QueuePlace, toQueuePlace } from '../queue-wire.ts';
import { type FindRequest, membersOf } from './planner.ts';
import type { Draft } from './receipts.ts';
import { type Rounds, type Seat, tooManyOf } from './rounds.ts';

/** How long those of a process that has crashed keep others waiting, and how often one that lives says so. */
const LEASE_MS = 10_000;
const RENEW_EVERY_MS = 2_500;

export interface QueueDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  watch: Watch;
  namespaces: Namespaces;
  request_timeout_ms: number;
}

/** How a find is ready to wait. */
export interface Readiness {
  ticket: string;
  wait_ms: number;
  /** Ends the wait, too. */
  patience: Patience;
}

interface Waiting {
  request: FindRequest & { ticket: string };
  /** His row was not there when it was looked for. Once may mean that he is just being seated. */
  was_missing: boolean;
}

export type Queue = ReturnType<typeof createQueue>;

/**
 * Lets finds wait for their turn when their namespace has as many lobbies as it may. Who waits is in the database, in one
 * order for all processes; the process that has his request tries again whenever something has changed. That nobody is
 * overtaken is decided where seats are taken (I-M12).
 */
export function createQueue(dependencies: QueueDependencies & { rounds: Rounds }) {
  const { database, clock, events, watch, namespaces, rounds, request_timeout_ms } = dependencies;
  const { queries } = database;
  const owner = crypto.randomUUID();
  const own = new Map<string, Waiting>();

  async function enter({ request }: Waiting): Promise<void> {
    const { namespace_id, ticket, client } = request;
    const row = {
      ...{ namespace_id, ticket, owner, client: client.name, players_max: client.players_max },
      ...{ lease_ts: after(clock.now(), LEASE_MS), seats: membersOf(request).length, ...searchOf(request) },
    };
    const arrival = await database
      .transact((tx) => store.insertQueued(tx, row))
      .catch((error: unknown) => {
        if (isTaken(error, 'queued_finds_namespace_id_ticket_pk'))
          throw new ServiceError('MATCHMAKER_TICKET_TAKEN', {}, { cause: error });
        throw error;
      });
    if (arrival === 'queue_full') throw new ServiceError('MATCHMAKER_QUEUE_FULL', { max: store.QUEUE_MAX });
    if (arrival === 'too_many_of_client') throw tooManyOf(request);
  }

  async function leave({ request: { namespace_id, ticket } }: Waiting): Promise<void> {
    await store.deleteQueued(queries, { namespace_id, ticket, owner });
  }

  /** A seat, if it is his turn and there is one. */
  async function attempt(request: FindRequest, draft: Draft | undefined): Promise<Seat | undefined> {
    try {
      return await rounds.seat(request, draft);
    } catch (error) {
      // Busy: others were faster every time, so there is news.
      const is_to_wait = ['MATCHMAKER_TOO_MANY_LOBBIES', ...('ticket' in request ? ['DATABASE_BUSY'] : [])];
      if (error instanceof ServiceError && is_to_wait.includes(error.code)) return undefined;
      throw error;
    }
  }

  /** Until it is his turn. Gives undefined when he would not wait so long. */
  async function wait(
    waiting: Waiting,
    prepare: () => Soon<FindRequest>,
    { wait_ms, patience: { signal } }: Readiness,
    draft: Draft | undefined,
  ): Promise<Seat | undefined> {
    const { namespace_id, ticket } = waiting.request;
    const look = async () => {
      if (signal.aborted) return undefined;
      const request = { ...(await prepare()), ticket };
      const has_moved = request.version_id !== waiting.request.version_id;
      waiting.request = request;
      if (has_moved) await database.transact((tx) => store.updateQueued(tx, request, searchOf(request)));
      return await attempt(request, draft);
    };
    const news = [topics.lobbiesOf(namespace_id), topics.queueOf(namespace_id), topics.namespace(namespace_id)];
    return await watch.until(news, look, { signal, caller_key: `queue:${ticket}`, timeout_ms: wait_ms });
  }

  /** Those who wait here have not gone; whoever was thought to have, stands at the end now. */
  async function renew(): Promise<void> {
    if (own.size === 0) return;
    const before = [...own];
    const tickets = await store.renewLeases(queries, owner, after(clock.now(), LEASE_MS));
    for (const [key, waiting] of before) {
      if (own.get(key) !== waiting) continue;
      const is_missing = !tickets.has(waiting.request.ticket);
      if (is_missing && waiting.was_missing) await enter(waiting).catch(goOnWithoutPlace);
      waiting.was_missing = is_missing && !waiting.was_missing;
    }
  }

  async function sweep(): Promise<number> {
    let swept = 0;
    for (const namespace_id of await store.selectAbandonedQueues(queries, clock.now())) {
      swept += await store.deleteAbandoned(queries, namespace_id, clock.now());
    }
    return swept;
  }

  async function readPlaces(keys: { namespace_id: string; ticket: string }[]): Promise<(QueuePlace | ServiceError)[]> {
    const [standings, known] = await Promise.all([
      store.selectStandings(queries, keys),
      Promise.all(keys.map(({ namespace_id }) => namespaces.find(namespace_id))),
    ]);
    const by_key = new Map(standings.map((standing) => [keyOf(standing), standing]));
    return keys.map((key, index) =>
      known[index] ? toQueuePlace(key.ticket, by_key.get(keyOf(key))) : new ServiceError('NAMESPACE_NOT_FOUND', {}),
    );
  }

  /** Where the holder of a ticket stands. Whoever does not wait, or not any more, stands nowhere. Watchable. */
  const place: Watchable<{ namespace_id: string; ticket: string }, QueuePlace> = {
    topics: ({ namespace_id }) => [topics.queueOf(namespace_id)],
    async read(key) {
      const [view] = await readPlaces([key]);
      if (!view || view instanceof Error) throw view ?? new ServiceError('NAMESPACE_NOT_FOUND', {});
      return view;
    },
    readMany: readPlaces,
  };

  return {
    place,
    /**
     * A seat: at once, or when it is his turn. `prepare` gives the request as it is by the version of now. Throws
     * MATCHMAKER_TOO_MANY_LOBBIES when that does not come in time.
     */
    async seat(prepare: () => Soon<FindRequest>, readiness: Readiness, draft: Draft | undefined): Promise<Seat> {
      const first = await prepare();
      const at_once = await attempt(first, draft);
      if (at_once) return at_once;
      const waiting: Waiting = { request: { ...first, ticket: readiness.ticket }, was_missing: false };
      const key = keyOf(waiting.request);
      await enter(waiting);
      own.set(key, waiting);
      let seat: Seat | undefined;
      try {
        draft?.reach('queued');
        seat = await wait(waiting, prepare, readiness, draft);
      } finally {
        own.delete(key);
        // Whoever has been seated has left the queue by that.
        if (!seat) await leave(waiting);
      }
      if (seat) return seat;
      // Nobody hears it, or the request's own time was over before his patience was.
      if (readiness.patience.is_over) throw new ServiceError('API_REQUEST_TIMEOUT', { timeout_ms: request_timeout_ms });
      throw new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {});
    },
    /** Says that those who wait here are there, and takes out those of processes that are not. */
    startKeeping(signal: AbortSignal): { stopped: Promise<void> } {
      return startLoop({
        name: 'queue',
        every_ms: RENEW_EVERY_MS,
        signal,
        events,
        async step() {
          await renew();
          return await sweep();
        },
      });
    },
  };
}

/** There is no room for him any more: he still gets what nobody else waits for. */
function goOnWithoutPlace(error: unknown): void {
  if (!(error instanceof ServiceError)) throw error;
}

const keyOf = ({ namespace_id, ticket }: { namespace_id: string; ticket: string }) => `${namespace_id} ${ticket}`;

function searchOf({ version_id, search: { game_modes, regions, tags } }: FindRequest) {
  return { version_id, game_modes, regions, tags };
}
