import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { isTaken } from '../../../platform/database/failures.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';
import { startLoop } from '../../../platform/loop.ts';
import type { Watchable } from '../../../platform/watch/views.ts';
import type { Watch } from '../../../platform/watch/watch.ts';
import type { Namespaces } from '../../namespaces/namespaces.ts';
import { topics } from '../../topics.ts';
import { overLimit } from '../refusals.ts';
import { AttemptPacing } from './attempt-pacing.ts';
import * as store from './queue-store.ts';
import { type QueuePosition, toQueuePosition } from './queue-wire.ts';
import type { ReceiptDraft } from './receipt-draft.ts';
import type { Seat } from './seat.ts';
import { type FindRequest, playerIdsOf } from './seat-requests.ts';
import { LostRaces, type Rounds } from './seat-rounds.ts';

/** Lifetime of a lease: how long the finds of a crashed process delay others. Running processes renew their leases. */
const LEASE_MS = 10_000;
const RENEW_EVERY_MS = 2_500;
/**
 * Time that other processes may need to renew their leases after an outage of the database: their hanging statement
 * ends, then they pause.
 */
const RECOVERY_MS = 15_000;
/** Interval while no find of this process waits. */
const SWEEP_EVERY_MS = 5_000;

export interface QueueDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  watch: Pick<Watch, 'until'>;
  namespaces: Pick<Namespaces, 'find'>;
}

/** How long a find waits, and its ticket. */
export interface WaitOptions {
  ticket: string;
  wait_ms: number;
  /** The time limit of the request, which ends the wait too. */
  deadline: RequestDeadline;
}

interface WaitingFind {
  request: FindRequest & { ticket: string };
  /** When it began to wait. */
  since: Date;
  /** Whether its row was missing at the last renewal. One miss is normal: the find may be getting its seat. */
  was_missing: boolean;
  /**
   * Whether it has entered the queue again. If it was getting its seat meanwhile, the new row is left over and must be
   * removed.
   */
  has_reentered: boolean;
}

export type Queue = ReturnType<typeof createQueue>;

/**
 * Creates the queue, in which finds wait for their turn while their namespace is at its limit of lobbies. It is in the
 * database, in one order for all processes. The process that has the request tries again after every change. The
 * statements that take seats ensure that no find overtakes another (I-M12).
 */
export function createQueue(dependencies: QueueDependencies & { rounds: Rounds }) {
  const { database, clock, events, watch, namespaces, rounds } = dependencies;
  const { queries } = database;
  const owner = crypto.randomUUID();
  const own = new Map<string, WaitingFind>();
  const pacing = new AttemptPacing();
  let wakeWork = () => {};

  async function enter({ request, since }: WaitingFind): Promise<void> {
    const { namespace_id, ticket, client } = request;
    const row = {
      namespace_id,
      ticket,
      owner,
      client: client.name,
      players_max: client.players_max,
      lease_ts: after(clock.now(), LEASE_MS),
      enter_ts: since,
      seats: playerIdsOf(request).length,
      ...toQueuedSearch(request),
    };
    const outcome = await database
      .transact((tx) => store.insertQueued(tx, row))
      .catch((error: unknown) => {
        if (isTaken(error, 'queued_finds_namespace_id_ticket_pk'))
          throw new ServiceError('MATCHMAKER_TICKET_TAKEN', {}, { cause: error });
        throw error;
      });
    if (outcome === 'queue_full') throw new ServiceError('MATCHMAKER_QUEUE_FULL', { max: store.QUEUE_MAX });
    if (outcome === 'too_many_of_client') throw overLimit(request);
  }

  /** Removes a find from the queue, but not a later find with the same ticket. */
  async function leave({ request: { namespace_id, ticket }, since }: WaitingFind): Promise<void> {
    await store.deleteQueued(queries, { namespace_id, ticket, owner, enter_ts: since });
  }

  /** Returns a seat if there is one now; undefined if the find has to wait. */
  async function trySeat(request: FindRequest, { deadline }: WaitOptions, draft: ReceiptDraft | undefined) {
    try {
      return await rounds.takeSeat(request, { draft, deadline });
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'MATCHMAKER_TOO_MANY_LOBBIES') return undefined;
      // Other requests won every race, so there has been a change, and the find tries again.
      if (error instanceof LostRaces && request.ticket !== undefined) return undefined;
      throw error;
    }
  }

  /** Tries again after changes until there is a seat. Returns undefined if there is none in time. */
  async function wait(
    find: WaitingFind,
    prepare: () => Promise<FindRequest>,
    options: WaitOptions,
    draft: ReceiptDraft | undefined,
  ): Promise<Seat | undefined> {
    const { namespace_id, ticket } = find.request;
    const { wait_ms, deadline } = options;
    const { signal } = deadline;
    const ends_at = performance.now() + wait_ms;
    const paced = pacing.add(namespace_id);
    const tryAgain = async () => {
      await pacing.waitForTurn(paced, { signal, ends_at });
      if (signal.aborted) return undefined;
      const request = { ...(await prepare()), ticket };
      const is_of_new_version = request.version_id !== find.request.version_id;
      find.request = request;
      if (is_of_new_version) await database.transact((tx) => store.updateQueued(tx, request, toQueuedSearch(request)));
      return await trySeat(request, options, draft);
    };
    const changes = [topics.lobbiesOf(namespace_id), topics.queueOf(namespace_id), topics.namespace(namespace_id)];
    try {
      return await watch.until(changes, tryAgain, { signal, caller_key: `queue:${ticket}`, timeout_ms: wait_ms });
    } finally {
      pacing.remove(paced);
    }
  }

  /** Renews the leases of this process's finds. A find that was removed by mistake enters again, at the end. */
  async function renew(): Promise<void> {
    if (own.size === 0) return;
    const before = [...own];
    const finds = before.map(([, { request }]) => ({ namespace_id: request.namespace_id, ticket: request.ticket }));
    const queued = await store.renewLeases(queries, { owner, finds, lease_ts: after(clock.now(), LEASE_MS) });
    const queued_keys = new Set(queued.map(keyOf));
    for (const [key, find] of before) {
      if (own.get(key) !== find) continue;
      const is_missing = !queued_keys.has(key);
      if (is_missing && find.was_missing) await enterAgain(key, find);
      find.was_missing = is_missing && !find.was_missing;
    }
  }

  async function enterAgain(key: string, find: WaitingFind): Promise<void> {
    find.has_reentered = true;
    await enter(find).catch(ignoreRefusal);
    // The find has ended meanwhile, and may have left before it entered.
    if (own.get(key) !== find) await leave(find);
  }

  /** Removes the finds whose lease ended before a given time. */
  async function sweep(leases_ended_before: Date): Promise<number> {
    let swept = 0;
    for (const namespace_id of await store.selectNamespacesWithEndedLeases(queries, leases_ended_before)) {
      swept += await store.deleteWithEndedLeases(queries, namespace_id, leases_ended_before);
    }
    return swept;
  }

  async function readPositions(
    keys: { namespace_id: string; ticket: string }[],
  ): Promise<(QueuePosition | ServiceError)[]> {
    const [positions, known] = await Promise.all([
      store.selectQueuePositions(queries, keys),
      Promise.all(keys.map(({ namespace_id }) => namespaces.find(namespace_id))),
    ]);
    const by_key = new Map(positions.map((position) => [keyOf(position), position]));
    return keys.map((key, at) =>
      known[at] ? toQueuePosition(key.ticket, by_key.get(keyOf(key))) : new ServiceError('NAMESPACE_NOT_FOUND', {}),
    );
  }

  /** The position of a find in the queue, by its ticket. Watchable. */
  const position: Watchable<{ namespace_id: string; ticket: string }, QueuePosition> = {
    topics: ({ namespace_id }) => [topics.queueOf(namespace_id)],
    async read(key) {
      const [view] = await readPositions([key]);
      if (!view || view instanceof Error) throw view ?? new ServiceError('NAMESPACE_NOT_FOUND', {});
      return view;
    },
    readMany: readPositions,
  };

  return {
    position,
    /** Returns how many finds wait in each namespace, longest queue first. */
    lengths: () => store.selectLengths(queries),
    /**
     * Returns a seat, at once or when it is the find's turn. `prepare` returns the request for the current version of the
     * namespace. Throws MATCHMAKER_TOO_MANY_LOBBIES if the turn does not come in time.
     */
    async awaitSeat(
      prepare: () => Promise<FindRequest>,
      options: WaitOptions,
      draft: ReceiptDraft | undefined,
    ): Promise<Seat> {
      const { ticket, deadline } = options;
      const first = await prepare();
      const at_once = await trySeat(first, options, draft);
      if (at_once) return at_once;
      const request = { ...first, ticket };
      const find: WaitingFind = { request, since: clock.now(), was_missing: false, has_reentered: false };
      const key = keyOf(find.request);
      await enter(find);
      own.set(key, find);
      if (own.size === 1) wakeWork();
      let seat: Seat | undefined;
      try {
        draft?.recordStage('queued');
        seat = await wait(find, prepare, options, draft);
      } finally {
        // A later find may have the same ticket by now.
        if (own.get(key) === find) own.delete(key);
        // The statement that took the seat has removed the find from the queue.
        if (!seat) await leave(find);
        // If this fails, the row ends with its lease. The client gets its seat.
        else if (find.has_reentered) await leave(find).catch(() => {});
      }
      if (seat) return seat;
      if (deadline.is_over) throw deadline.toError();
      throw new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {});
    },
    /**
     * Starts the loop that renews this process's leases and removes the finds of processes that crashed. During an outage
     * of the database the leases of all processes end. For a while after it, the loop removes only finds whose leases had
     * ended before it, so that the other processes can renew theirs and their finds keep their places.
     */
    startWork(signal: AbortSignal): { stopped: Promise<void> } {
      let failed_at = Number.NEGATIVE_INFINITY;
      let leases_ended_before = clock.now();
      const loop = startLoop({
        name: 'queue',
        every_ms: () => (own.size > 0 ? RENEW_EVERY_MS : SWEEP_EVERY_MS),
        pause_max_ms: RENEW_EVERY_MS,
        signal,
        events,
        async step() {
          // Read before `renew`: while the database is slow, other processes renew late too, and a later time would
          // count their leases as ended.
          const now = clock.now();
          try {
            await renew();
            if (performance.now() - failed_at >= RECOVERY_MS) leases_ended_before = now;
            return await sweep(leases_ended_before);
          } catch (error) {
            failed_at = performance.now();
            throw error;
          }
        },
      });
      wakeWork = loop.wake;
      return loop;
    },
  };
}

/** Ignores a refusal, for example because the queue is full. The find keeps trying without being in the queue. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ServiceError)) throw error;
}

const keyOf = ({ namespace_id, ticket }: { namespace_id: string; ticket: string }) => `${namespace_id} ${ticket}`;

function toQueuedSearch({ version_id, search: { game_modes, regions, tags } }: FindRequest) {
  return { version_id, game_modes, regions, tags };
}
