import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { CHANGES_MAX, PAGE_MAX } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-cache-store.ts';
import { topics } from '../../../src/features/topics.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { copyLobbies } from '../../support/lobbies/lobby-copies.ts';
import { countQueries, openUnnotifiedRounds, requestSeat } from '../../support/matchmaker/unnotified-rounds.ts';
import { shareService } from '../../support/suite.ts';

const MANY = IS_FULL_LENGTH ? 100_000 : CHANGES_MAX + PAGE_MAX;
const FINDS = 100;

const muster = shareService();
let database: Database;
beforeAll(() => {
  database = openDatabase(muster.database_address, 4);
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

/** Creates a game with this many lobbies, of which only the first is open. */
async function makeGameWithLobbies(count: number) {
  const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 200 } } });
  const { lobby_id } = await seatOf(find(muster, game));
  const from = sql`lobbies as lobby cross join generate_series(2, ${count}::int) where lobby_id = ${lobby_id}`;
  const changes = sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null, 'is_closed', true)`;
  await database.transact(async (tx) => {
    await tx.execute(sql`set local statement_timeout = 0`);
    await tx.execute(copyLobbies(from, changes));
  });
  return { game, lobby_id };
}

test(`find: the first finds in a namespace of ${MANY} lobbies share one load, and all get seats`, async () => {
  const { game, lobby_id } = await makeGameWithLobbies(MANY);
  const { database: counting, counted } = countQueries(database);
  const rounds = openUnnotifiedRounds({ database: counting, clock: muster.clock });
  const seats = await Promise.all(Array.from({ length: FINDS }, () => rounds.takeSeat(requestSeat(game))));
  expect(new Set(seats.map((seat) => seat.lobby_id))).toEqual(new Set([lobby_id]));
  const statements_of_rounds = 2 * FINDS;
  expect(counted()).toBeLessThan(MANY / PAGE_MAX + statements_of_rounds);

  await database.queries.execute(sql`
    update lobbies set is_closed = not is_closed, changed = 1000000 where namespace_id = ${game.namespace_id}`);
  await database.queries.execute(sql`
    update topics set version = 1000000 where topic = ${topics.lobbiesOf(game.namespace_id)}`);
  const another = await rounds.takeSeat(requestSeat(game));
  expect(another.lobby_id).not.toBe(lobby_id);
}, 300_000);

test('find: the last lobby of a full page is found', async () => {
  const { game } = await makeGameWithLobbies(2 * PAGE_MAX);
  const [last] = await database.queries.execute<{ lobby_id: string }>(sql`
    select lobby_id from lobbies where namespace_id = ${game.namespace_id} order by lobby_id desc limit 1`);
  await database.queries.execute(sql`
    update lobbies set is_closed = lobby_id <> ${last?.lobby_id} where namespace_id = ${game.namespace_id}`);
  const rounds = openUnnotifiedRounds({ database, clock: muster.clock });
  expect(await rounds.takeSeat(requestSeat(game))).toMatchObject({ lobby_id: last?.lobby_id });
});

test('find: while one namespace is loaded, finds of others get seats', async () => {
  const [slow, other] = [await makeGameWithLobbies(1), await makeGameWithLobbies(1)];
  const may_load = Promise.withResolvers<void>();
  const rounds = openUnnotifiedRounds({
    database,
    clock: muster.clock,
    change: ({ load }) => ({
      async load(namespace_id) {
        if (namespace_id === slow.game.namespace_id) await may_load.promise;
        await load(namespace_id);
      },
    }),
  });
  const waiting = [rounds.takeSeat(requestSeat(slow.game)), rounds.takeSeat(requestSeat(slow.game))];
  for (let round = 0; round < 3; round += 1) {
    expect(await rounds.takeSeat(requestSeat(other.game))).toMatchObject({ lobby_id: other.lobby_id });
  }
  may_load.resolve();
  expect(await Promise.all(waiting)).toMatchObject([{ lobby_id: slow.lobby_id }, { lobby_id: slow.lobby_id }]);
});

test('find: after a load that failed, the next find loads the namespace again', async () => {
  const { game, lobby_id } = await makeGameWithLobbies(1);
  let loads = 0;
  const rounds = openUnnotifiedRounds({
    database,
    clock: muster.clock,
    change: ({ load }) => ({
      async load(namespace_id) {
        loads += 1;
        if (loads === 1) throw new ServiceError('DATABASE_BUSY', {});
        await load(namespace_id);
      },
    }),
  });
  await expect(rounds.takeSeat(requestSeat(game))).rejects.toMatchObject({ code: 'DATABASE_BUSY' });
  expect((await rounds.takeSeat(requestSeat(game))).lobby_id).toBe(lobby_id);
});

test('find: after a restore of the database, the cache drops lobbies of the lost state', async () => {
  const { game, lobby_id } = await makeGameWithLobbies(1);
  const { game: later } = await makeGameWithLobbies(40);
  await database.queries.execute(sql`
    update lobbies set is_closed = false, player_count = 5, namespace_id = ${game.namespace_id}, version_id = ${game.version_id}
    where namespace_id = ${later.namespace_id}`);
  const rounds = openUnnotifiedRounds({ database, clock: muster.clock });
  await rounds.takeSeat(requestSeat(game));
  await database.queries.execute(sql`
    update lobbies set stop_ts = now(), stop_reason = 'removed' where lobby_id <> ${lobby_id} and namespace_id = ${game.namespace_id}`);
  await database.queries.execute(sql`
    update topics set version = version - 1 where topic = ${topics.lobbiesOf(game.namespace_id)}`);
  expect((await rounds.takeSeat(requestSeat(game))).lobby_id).toBe(lobby_id);
});
