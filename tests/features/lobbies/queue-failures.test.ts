import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createQueue } from '../../../src/features/lobbies/matchmaking/queue/queue.ts';
import { deleteQueued } from '../../../src/features/lobbies/matchmaking/queue/queue-store.ts';
import { UNKEPT_DRAFT } from '../../../src/features/lobbies/matchmaking/receipts/receipt-draft.ts';
import type { FindRequest, SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { LostRaces, type Rounds } from '../../../src/features/lobbies/matchmaking/rounds/seat-rounds.ts';
import { topics } from '../../../src/features/topics.ts';
import { after, type Clock } from '../../../src/platform/clock.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { DEADLINES } from '../../../src/platform/database/deadlines.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { Events, ServiceEvent } from '../../../src/platform/events.ts';
import { lockTopics } from '../../../src/platform/watch/versions.ts';
import { createTestClock } from '../../support/clock.ts';
import type { TestGame } from '../../support/game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { openOtherProcess } from '../../support/lobbies/queue.ts';
import { requestSeat } from '../../support/matchmaker/unnotified-rounds.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
const SEAT = { lobby_id: 'a lobby', code: null, region: 'local', ports: {}, is_new: false };
const TOO_MANY = new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {});

let database: Database;
let game: TestGame & { version_id: string };
beforeAll(async () => {
  database = openDatabase(muster.database_address, 4);
  game = await makeControlledGame(muster);
}, 300_000);
afterAll(() => database[Symbol.asyncDispose]());

interface QueueParts {
  clock?: Clock;
  on?: Database;
  emit?: Events['emit'];
}

/** Opens a queue that tries again without end, on rounds that the test decides. */
function openQueue(
  takeSeat: Rounds['takeSeat'],
  { clock = muster.clock, on = database, emit = () => {} }: QueueParts = {},
) {
  const queue = createQueue({
    database: on,
    clock,
    events: { emit },
    namespaces: { find: async () => undefined },
    watch: {
      async until(_topics, look) {
        for (;;) {
          const found = await look();
          if (found !== undefined) return found;
        }
      },
    },
    rounds: { takeSeat },
  });
  const { signal } = new AbortController();
  const ends_at = Number.POSITIVE_INFINITY;
  const deadline = { signal, ends_at, is_over: false, toError: () => new ServiceError('API_CLIENT_GONE', {}) };
  return {
    queue,
    awaitSeat(ticket: string = crypto.randomUUID()) {
      const request = requestSeat(game) as FindRequest;
      return queue.awaitSeat(async () => request, { ticket, wait_ms: 1_000_000, deadline }, UNKEPT_DRAFT);
    },
  };
}

/** Returns the waiting finds with a ticket. */
async function selectFinds(ticket: string) {
  return await database.queries.execute<{ owner: string; enter_ts: string; lease_ts: string }>(sql`
    select owner, enter_ts, lease_ts from queued_finds where namespace_id = ${game.namespace_id} and ticket = ${ticket}`);
}

/** Removes a find from the queue, as the statement does that takes its seat. */
async function commitSeat(ticket: string): Promise<void> {
  const [row] = await selectFinds(ticket);
  if (!row) throw new Error('the find waits');
  const { namespace_id } = game;
  await deleteQueued(database.queries, {
    namespace_id,
    ticket,
    owner: row.owner,
    enter_ts: new Date(row.enter_ts),
  });
}

test('queue: a find waits on after lost races, and ends with an error if the database fails', async () => {
  const ticket = crypto.randomUUID();
  const outcomes = [TOO_MANY, new LostRaces(), TOO_MANY, new ServiceError('DATABASE_BUSY', {})];
  let tries = 0;
  const { awaitSeat } = openQueue(async () => {
    const outcome = outcomes[tries];
    tries += 1;
    if (outcome) throw outcome;
    return SEAT;
  });
  await expect(awaitSeat(ticket)).rejects.toMatchObject({ code: 'DATABASE_BUSY' });
  expect(tries).toBe(outcomes.length);
  expect(await selectFinds(ticket)).toHaveLength(0);
});

test('queue: a find that has entered again although it has a seat leaves no row', async () => {
  const ticket = crypto.randomUUID();
  const { queue, awaitSeat } = openQueue(async (request) => {
    if (!isWaiting(request)) throw TOO_MANY;
    await commitSeat(ticket);
    await waitFor(async () => (await selectFinds(ticket)).length > 0, 'the find to enter again');
    return SEAT;
  });
  await using _working = work(queue);
  await awaitSeat(ticket);
  expect(await selectFinds(ticket)).toHaveLength(0);
});

test('queue: a find keeps its lease when an earlier one with its ticket ends', async () => {
  const ticket = crypto.randomUUID();
  const earlier = Promise.withResolvers<void>();
  const later = Promise.withResolvers<void>();
  let tries = 0;
  const { queue, awaitSeat } = openQueue(async (request) => {
    if (!isWaiting(request)) throw TOO_MANY;
    tries += 1;
    if (tries === 1) {
      await commitSeat(ticket);
      await earlier.promise;
    } else await later.promise;
    return SEAT;
  });
  const first = awaitSeat(ticket);
  await waitFor(async () => tries === 1 && (await selectFinds(ticket)).length === 0, 'the seat to be committed');
  muster.clock.advance(1);
  const second = awaitSeat(ticket);
  await waitFor(() => tries === 2, 'the later find to wait');
  earlier.resolve();
  await first;
  const [before] = await selectFinds(ticket);
  await using _working = work(queue);
  const renewed = await waitFor(async () => {
    const rows = await selectFinds(ticket);
    return rows[0]?.lease_ts === before?.lease_ts ? undefined : rows;
  }, 'the lease to be renewed');
  expect(renewed).toHaveLength(1);
  later.resolve();
  await second;
});

test('queue: a find that cannot enter again because the database is busy enters as soon as it can', async () => {
  const ticket = crypto.randomUUID();
  await using hasty = openDatabase(muster.database_address, 2, { ...DEADLINES, transaction_ms: 300 });
  const failures: ServiceEvent[] = [];
  const emit = (event: ServiceEvent) => void (event.event === 'loop_failed' && failures.push(event));
  const seat = Promise.withResolvers<void>();
  const takeSeat = async (request: SeatRequest) => {
    if (!isWaiting(request)) throw TOO_MANY;
    await seat.promise;
    return SEAT;
  };
  const { queue, awaitSeat } = openQueue(takeSeat, { on: hasty, emit });
  const waiting = awaitSeat(ticket);
  await waitFor(async () => (await selectFinds(ticket)).length > 0, 'the find to wait');
  await commitSeat(ticket);
  await using _working = work(queue);
  await database.transact(async (tx) => {
    await lockTopics(tx, [topics.queueOf(game.namespace_id)]);
    await waitFor(() => failures.length > 0, 'the find to fail to enter');
  });
  expect(failures[0]).toMatchObject({ loop: 'queue', cause: { code: 'DATABASE_BUSY' } });
  await waitFor(async () => (await selectFinds(ticket)).length > 0, 'the find to enter again');
  seat.resolve();
  await waiting;
});

test('queue: a process whose clock is ahead removes no finds of others before their leases end', async () => {
  await using other_process = openOtherProcess(muster.database_address);
  const [waiting, ended] = [crypto.randomUUID(), crypto.randomUUID()];
  await other_process.wait(game, after(new Date(), 60_000), { ticket: waiting });
  // Before the step begins, as the slowest answer of the database about its clock tells it.
  await other_process.wait(game, after(new Date(), -60_000), { ticket: ended });
  const clock = createTestClock();
  clock.advance(3_600_000);
  const { queue } = openQueue(async () => SEAT, { clock });
  {
    await using _first_step = work(queue);
  }
  expect([(await selectFinds(waiting)).length, (await selectFinds(ended)).length]).toEqual([1, 0]);
  await other_process.leave(game);
});

const isWaiting = (request: SeatRequest): boolean => request.kind === 'find' && request.ticket !== undefined;

/** Runs the background work of a queue until it is disposed of. */
function work(queue: ReturnType<typeof createQueue>): AsyncDisposable {
  const working = new AbortController();
  const { stopped } = queue.startWork(working.signal);
  return {
    async [Symbol.asyncDispose]() {
      working.abort();
      await stopped;
    },
  };
}
