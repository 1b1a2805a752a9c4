import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { LobbyOutcome } from '../../../src/features/lobbies/matchmaking/new-lobbies/create-lobbies.ts';
import { PendingRequest } from '../../../src/features/lobbies/matchmaking/rounds/pending-request.ts';
import type { PlannedLobby } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import { planRound } from '../../../src/features/lobbies/matchmaking/rounds/round-plan.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { openUnnotifiedCache, openUnnotifiedRounds, requestSeat } from '../../support/matchmaker/unnotified-rounds.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
let database: Database;
let one: Awaited<ReturnType<typeof makeGame>>;
let other: Awaited<ReturnType<typeof makeGame>>;
beforeAll(async () => {
  database = openDatabase(muster.database_address, 4);
  [one, other] = [await makeGame(), await makeGame()];
}, 300_000);
afterAll(() => database[Symbol.asyncDispose]());

async function makeGame() {
  const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 100 } } });
  const { lobby_id } = await seatOf(find(muster, game));
  return { ...game, lobby_id };
}

/** Opens rounds that have both games in memory. */
async function openRounds(options: Partial<Parameters<typeof openUnnotifiedRounds>[0]> = {}) {
  const rounds = openUnnotifiedRounds({ database, clock: muster.clock, ...options });
  for (const game of [one, other]) await rounds.takeSeat(requestSeat(game));
  return rounds;
}

/** Watches whether a promise has settled. */
function watchEnd(promise: Promise<unknown>): { is_over: boolean } {
  const watched = { is_over: false };
  const end = () => {
    watched.is_over = true;
  };
  promise.then(end, end);
  return watched;
}

test('a game whose lobbies are locked delays no other game of its round, and gets its seats once they are unlocked', async () => {
  const rounds = await openRounds();
  const release = await muster.inspector.holdSeats(one.namespace_id);
  // While the first find is decided, the others wait for the next round.
  const first = rounds.takeSeat(requestSeat(other));
  const locked = rounds.takeSeat(requestSeat(one));
  const locked_end = watchEnd(locked);
  const free = rounds.takeSeat(requestSeat(other));
  expect(await first).toMatchObject({ lobby_id: other.lobby_id });
  expect(await free).toMatchObject({ lobby_id: other.lobby_id });
  const locked_later = rounds.takeSeat(requestSeat(one));
  const free_later = rounds.takeSeat(requestSeat(other));
  expect(await free_later).toMatchObject({ lobby_id: other.lobby_id });
  expect(locked_end.is_over).toBe(false);
  await release();
  for (const seat of await Promise.all([locked, locked_later])) expect(seat).toMatchObject({ lobby_id: one.lobby_id });
});

test('while lobbies of a game are created, other games get seats; its own requests are decided after that', async () => {
  const creating = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  const rounds = await openRounds({
    createPlanned: async (planned) => {
      called.resolve();
      await creating.promise;
      return planned.map(failWith(new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {})));
    },
  });
  const created = rounds.takeSeat(requestSeat(one, { may_create: true, game_mode: 'new' }));
  created.catch(() => {});
  await called.promise;
  const later = rounds.takeSeat(requestSeat(one));
  const later_end = watchEnd(later);
  expect(await rounds.takeSeat(requestSeat(other))).toMatchObject({ lobby_id: other.lobby_id });
  expect(later_end.is_over).toBe(false);
  creating.resolve();
  await expect(created).rejects.toMatchObject({ code: 'MATCHMAKER_AUTO_CREATE_FAILED' });
  expect(await later).toMatchObject({ lobby_id: one.lobby_id });
});

test('a game whose changes cannot be read fails alone', async () => {
  let fails = false;
  const rounds = await openRounds({
    change: ({ read }) => ({
      async read(namespace_id, options) {
        if (fails && namespace_id === one.namespace_id) throw new Error('the changes cannot be read');
        return await read(namespace_id, options);
      },
    }),
  });
  fails = true;
  // While the first find is decided, the others wait for the next round.
  const outcomes = await Promise.allSettled([
    rounds.takeSeat(requestSeat(other)),
    rounds.takeSeat(requestSeat(one)),
    rounds.takeSeat(requestSeat(other)),
  ]);
  expect(outcomes).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { message: 'the changes cannot be read' } },
    { status: 'fulfilled' },
  ]);
});

test('a request that is decided again has the lobbies of its own game read, and not those of others', async () => {
  const cache = openUnnotifiedCache(database);
  for (const { namespace_id } of [one, other]) await cache.load(namespace_id);
  const read_from_database: string[] = [];
  const read: typeof cache.read = (namespace_id, options) => {
    if (options.is_fresh) read_from_database.push(namespace_id);
    return cache.read(namespace_id, options);
  };
  const [repeated, first] = [one, other].map((game) => new PendingRequest(requestSeat(game), {}, () => {}));
  if (!repeated || !first) throw new Error('two games have two requests');
  repeated.attempts = 1;
  const round = await planRound({ read }, [first, repeated]);
  expect(round.assignments.map(({ lobby_id }) => lobby_id)).toEqual([other.lobby_id, one.lobby_id]);
  expect(read_from_database).toEqual([one.namespace_id]);
  expect([...round.planned_first]).toEqual([first.request]);
});

test('the requests of one game leave places for those of other games', async () => {
  const loading = Promise.withResolvers<void>();
  const rounds = openUnnotifiedRounds({
    database,
    clock: muster.clock,
    change: ({ load }) => ({
      async load(namespace_id) {
        if (namespace_id === one.namespace_id) await loading.promise;
        await load(namespace_id);
      },
    }),
  });
  const refused: unknown[] = [];
  const waiting: Promise<unknown>[] = [];
  while (refused.length === 0) {
    try {
      waiting.push(rounds.takeSeat(requestSeat(one)).catch(({ code }) => code));
    } catch (error) {
      refused.push(error);
    }
  }
  expect(refused).toMatchObject([{ code: 'DATABASE_BUSY' }]);
  expect(await rounds.takeSeat(requestSeat(other))).toMatchObject({ lobby_id: other.lobby_id });
  loading.reject(new ServiceError('DATABASE_UNAVAILABLE', {}));
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['DATABASE_UNAVAILABLE']));
  await expect(rounds.takeSeat(requestSeat(one))).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
});

test('a request whose client has gone takes no seat', async () => {
  const rounds = await openRounds();
  const deadline = { is_over: true, toError: () => new ServiceError('API_CLIENT_GONE', {}) };
  const before = await muster.inspector.playerCounts(one.namespace_id);
  const gone = rounds.takeSeat(requestSeat(one), { deadline });
  await expect(gone).rejects.toMatchObject({ code: 'API_CLIENT_GONE' });
  await rounds.takeSeat(requestSeat(other));
  expect(await muster.inspector.playerCounts(one.namespace_id)).toEqual(before);
});

test('no lobby is created for a client who goes while its round is planned or waits for a slot', async () => {
  const created: string[] = [];
  const rounds = await openRounds({
    createPlanned: async (planned) => {
      created.push(...planned.map(({ namespace_id }) => namespace_id));
      return planned.map(failWith(new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {})));
    },
  });
  let reads = 0;
  const deadline = {
    // The client goes after the round has begun.
    get is_over() {
      reads += 1;
      return reads > 1;
    },
    toError: () => new ServiceError('API_CLIENT_GONE', {}),
  };
  const gone = rounds.takeSeat(requestSeat(one, { may_create: true, game_mode: 'new' }), { deadline });
  await expect(gone).rejects.toMatchObject({ code: 'API_CLIENT_GONE' });
  const waiting = rounds.takeSeat(requestSeat(other, { may_create: true, game_mode: 'new' }));
  await expect(waiting).rejects.toMatchObject({ code: 'MATCHMAKER_AUTO_CREATE_FAILED' });
  expect(created).toEqual([other.namespace_id]);
});

test('a failure of the database is reported as such, also to a find that may not create lobbies', async () => {
  const rounds = await openRounds({
    createPlanned: async (planned) => planned.map(failWith(new ServiceError('DATABASE_BUSY', {}))),
  });
  // While the first find is decided, the others wait for the next round.
  const [, ...outcomes] = await Promise.allSettled([
    rounds.takeSeat(requestSeat(other)),
    rounds.takeSeat(requestSeat(one, { may_create: true, game_mode: 'new' })),
    rounds.takeSeat(requestSeat(one, { game_mode: 'new' })),
  ]);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'DATABASE_BUSY' } });
});

test('seats whose commit has lost its answer are released, whenever it was executed', async () => {
  let is_lost = false;
  const lossy: Database = {
    ...database,
    openDedicatedConnection(options) {
      const connection = database.openDedicatedConnection(options);
      const execute: typeof connection.execute = (query) => {
        if (!is_lost) return connection.execute(query);
        // The statement is executed later, as by a server that was frozen.
        late = async () => void (await connection.execute(query));
        throw new ServiceError('DATABASE_BUSY', {});
      };
      return { execute };
    },
    [Symbol.asyncDispose]: async () => {},
  };
  let late = async () => {};
  const rounds = await openRounds({ database: lossy });
  const counts = () => muster.inspector.playerCounts(one.namespace_id);
  const before = await counts();
  is_lost = true;
  await expect(rounds.takeSeat(requestSeat(one))).rejects.toMatchObject({ code: 'DATABASE_BUSY' });
  expect(await rounds.abandoned_seats.release()).toBe(0);
  await late();
  expect(await counts()).not.toEqual(before);
  await waitFor(async () => (await rounds.abandoned_seats.release()) === 1, 'the seat to be released');
  expect(await counts()).toEqual(before);
});

const failWith =
  (error: ServiceError) =>
  (planned: PlannedLobby): LobbyOutcome => ({ is: 'refused', planned, error, over_limit: [] });
