import { ServiceError } from '../../../../platform/errors.ts';
import type { RequestDeadline } from '../../../../platform/http/request-deadline.ts';
import type { Watchable } from '../../../../platform/watch/views.ts';
import type { Watch } from '../../../../platform/watch/watch.ts';
import type { Namespaces } from '../../../namespaces/namespaces.ts';
import { topics } from '../../../topics.ts';
import type { ReceiptDraft } from '../receipts/receipt-draft.ts';
import type { FindRequest } from '../rounds/seat-requests.ts';
import { LostRaces, type Rounds } from '../rounds/seat-rounds.ts';
import type { Seat } from '../seat.ts';
import { AttemptPacing } from './attempt-pacing.ts';
import {
  createQueueLeases,
  type QueueLeasesDependencies,
  queueKeyOf,
  toQueuedSearch,
  type WaitingFind,
} from './queue-leases.ts';
import * as store from './queue-store.ts';
import { type QueuePosition, toQueuePosition } from './queue-wire.ts';

export interface QueueDependencies extends QueueLeasesDependencies {
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

export type Queue = ReturnType<typeof createQueue>;

/**
 * Creates the queue, in which finds wait for their turn while their namespace is at its limit of lobbies. It is in the
 * database, in one order for all processes. The process that has the request tries again after every change. The
 * statements that take seats ensure that no find overtakes another (I-M12).
 */
export function createQueue(dependencies: QueueDependencies & { rounds: Rounds }) {
  const { database, watch, namespaces, rounds } = dependencies;
  const { queries } = database;
  const leases = createQueueLeases(dependencies);
  const pacing = new AttemptPacing();

  /** Returns a seat if there is one now; undefined if the find has to wait. */
  async function trySeat(request: FindRequest, { deadline }: WaitOptions, draft: ReceiptDraft) {
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
    draft: ReceiptDraft,
  ): Promise<Seat | undefined> {
    const { namespace_id, ticket } = find.request;
    const { wait_ms, deadline } = options;
    const { signal } = deadline;
    const ends_at = performance.now() + wait_ms;
    const paced_find = pacing.add(namespace_id);
    const tryAgain = async () => {
      await pacing.waitForAttempt(paced_find, { signal, ends_at });
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
      pacing.remove(paced_find);
    }
  }

  async function readPositions(
    keys: { namespace_id: string; ticket: string }[],
  ): Promise<(QueuePosition | ServiceError)[]> {
    const [positions, namespace_rows] = await Promise.all([
      store.selectQueuePositions(queries, keys),
      Promise.all(keys.map(({ namespace_id }) => namespaces.find(namespace_id))),
    ]);
    const by_key = new Map(positions.map((position) => [queueKeyOf(position), position]));
    return keys.map((key, at) =>
      namespace_rows[at]
        ? toQueuePosition(key.ticket, by_key.get(queueKeyOf(key)))
        : new ServiceError('NAMESPACE_NOT_FOUND', {}),
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
    async awaitSeat(prepare: () => Promise<FindRequest>, options: WaitOptions, draft: ReceiptDraft): Promise<Seat> {
      const { ticket, deadline } = options;
      const first = await prepare();
      const at_once = await trySeat(first, options, draft);
      if (at_once) return at_once;
      const find = await leases.enter({ ...first, ticket });
      let seat: Seat | undefined;
      try {
        draft.recordStage('queued');
        seat = await wait(find, prepare, options, draft);
      } finally {
        await leases.leave(find, { has_seat: seat !== undefined });
      }
      if (seat) return seat;
      if (deadline.is_over) throw deadline.toError();
      throw new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {});
    },
    /** Starts the loop that keeps the places of this process's finds, and removes the finds of processes that crashed. */
    startWork: leases.startWork,
  };
}
