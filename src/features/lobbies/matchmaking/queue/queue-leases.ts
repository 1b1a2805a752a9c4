import { after, type Clock } from '../../../../platform/clock.ts';
import type { Database } from '../../../../platform/database/database.ts';
import { isTaken } from '../../../../platform/database/failures.ts';
import { ServiceError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import { startLoop } from '../../../../platform/loop.ts';
import { overLimit } from '../../refusals.ts';
import { type FindRequest, playerIdsOf } from '../rounds/seat-requests.ts';
import * as store from './queue-store.ts';

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

/** The errors of a find that may not enter the queue. */
const REFUSALS: ReadonlySet<string> = new Set([
  'MATCHMAKER_TICKET_TAKEN',
  'MATCHMAKER_QUEUE_FULL',
  'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
]);

export interface QueueLeasesDependencies {
  database: Database;
  clock: Clock;
  events: Events;
}

/** A find of this process that is in the queue. */
export interface WaitingFind {
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

/** Creates the leases of this process's finds in the queue. A find whose lease has ended is removed by any process. */
export function createQueueLeases({ database, clock, events }: QueueLeasesDependencies) {
  const { queries } = database;
  const owner = crypto.randomUUID();
  const own = new Map<string, WaitingFind>();
  let wakeWork = () => {};

  async function insert({ request, since }: WaitingFind): Promise<void> {
    const { namespace_id, ticket, client } = request;
    const row = {
      namespace_id,
      ticket,
      owner,
      client: client.name,
      players_max: client.players_max,
      lease_ms: LEASE_MS,
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
  async function remove({ request: { namespace_id, ticket }, since }: WaitingFind): Promise<void> {
    await store.deleteQueued(queries, { namespace_id, ticket, owner, enter_ts: since });
  }

  /** Renews the leases of this process's finds. A find that was removed by mistake enters again, at the end. */
  async function renew(): Promise<void> {
    if (own.size === 0) return;
    const before = [...own];
    const finds = before.map(([, { request }]) => ({ namespace_id: request.namespace_id, ticket: request.ticket }));
    const queued = await store.renewLeases(queries, { owner, finds, lease_ms: LEASE_MS });
    const queued_keys = new Set(queued.map(queueKeyOf));
    for (const [key, find] of before) {
      if (own.get(key) !== find) continue;
      const is_missing = !queued_keys.has(key);
      if (is_missing && find.was_missing) await enterAgain(key, find);
      find.was_missing = is_missing && !find.was_missing;
    }
  }

  async function enterAgain(key: string, find: WaitingFind): Promise<void> {
    find.has_reentered = true;
    await insert(find).catch(ignoreRefusal);
    // The find has ended meanwhile, and may have left before it entered.
    if (own.get(key) !== find) await remove(find);
  }

  /** Removes the finds whose lease ended before a given time of the database. */
  async function sweep(leases_ended_before: Date): Promise<number> {
    let swept = 0;
    for (const namespace_id of await store.selectNamespacesWithEndedLeases(queries, leases_ended_before)) {
      swept += await store.deleteWithEndedLeases(queries, namespace_id, leases_ended_before);
    }
    return swept;
  }

  return {
    /** Enters a find into the queue. Throws if its ticket is taken, the queue is full, or its client is over its limit. */
    async enter(request: WaitingFind['request']): Promise<WaitingFind> {
      const find = { request, since: clock.now(), was_missing: false, has_reentered: false };
      await insert(find);
      own.set(queueKeyOf(request), find);
      if (own.size === 1) wakeWork();
      return find;
    },
    /** Ends the wait of a find, with a seat or without. */
    async leave(find: WaitingFind, { has_seat }: { has_seat: boolean }): Promise<void> {
      const key = queueKeyOf(find.request);
      // A later find may have the same ticket by now.
      if (own.get(key) === find) own.delete(key);
      // The statement that took the seat has removed the find from the queue.
      if (!has_seat) await remove(find);
      // If this fails, the row ends with its lease. The client gets its seat.
      else if (find.has_reentered) await remove(find).catch(() => {});
    },
    /**
     * Starts the loop that renews this process's leases and removes the finds of processes that crashed. During an outage
     * of the database the leases of all processes end. For a while after it, the loop removes only finds whose leases had
     * ended before it, so that the other processes can renew theirs and their finds keep their places.
     */
    startWork(signal: AbortSignal): { stopped: Promise<void> } {
      let failed_at = Number.NEGATIVE_INFINITY;
      let leases_ended_before: Date | undefined;
      const loop = startLoop({
        name: 'queue',
        every_ms: () => (own.size > 0 ? RENEW_EVERY_MS : SWEEP_EVERY_MS),
        pause_max_ms: RENEW_EVERY_MS,
        signal,
        events,
        async step() {
          const began_at = performance.now();
          try {
            // The time of the database when the step began: while it is slow, other processes renew late too, and a
            // later time would count their leases as ended.
            const now = after(await store.readClock(queries), began_at - performance.now());
            await renew();
            if (performance.now() - failed_at >= RECOVERY_MS) leases_ended_before = now;
            return leases_ended_before ? await sweep(leases_ended_before) : 0;
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

/** Ignores a refusal to enter the queue. The find keeps trying without being in it. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ServiceError && REFUSALS.has(error.code))) throw error;
}

/** Returns the key of a find in the queue. */
export const queueKeyOf = ({ namespace_id, ticket }: { namespace_id: string; ticket: string }) =>
  `${namespace_id} ${ticket}`;

/** Returns what a find searches, as its row in the queue has it. */
export function toQueuedSearch({ version_id, search: { game_modes, regions, tags } }: FindRequest) {
  return { version_id, game_modes, regions, tags };
}
