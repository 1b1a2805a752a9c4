import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { deleteQueued, insertQueued } from '../../../src/features/lobbies/matchmaking/queue/queue-store.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { type ProposedSeat, takeSeats } from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { setConnected } from '../../../src/features/lobbies/players-store.ts';
import { selectLobby, setReady, stopLobby } from '../../../src/features/lobbies/store.ts';
import { after } from '../../../src/platform/clock.ts';
import { type Database, openDatabase, type Tx } from '../../../src/platform/database/database.ts';
import type { TestGame } from '../../support/game.ts';
import { UNLIMITED_CLIENT } from '../../support/game-limits.ts';
import { connectGameServer, find, makeControlledGame, seatOf, waitForFirstLobby } from '../../support/game-server.ts';
import { copyLobbies } from '../../support/lobbies/lobby-copies.ts';
import { openChance } from '../../support/matchmaker/chance.ts';
import {
  countQueries,
  openUnnotifiedRounds,
  requestSeat,
  watchQueries,
} from '../../support/matchmaker/unnotified-rounds.ts';
import { shareService } from '../../support/suite.ts';
import { countUpdates } from '../../support/updates.ts';

const muster = shareService();
let database: Database;
beforeAll(() => {
  database = openDatabase(muster.database_address, 4);
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const SEED = 18;
/** The deadline is far away, because expired seats are released at any moment. */
const moments = () => ({ now: muster.clock.now(), deadline: after(muster.clock.now(), 3_600_000) });

function proposeSeats(kind: ProposedSeat['kind'], count: number, place: { lobby_id: string; namespace_id: string }) {
  const { lobby_id, namespace_id } = place;
  return Array.from({ length: count }, (_, request_number) => ({
    player_id: Bun.randomUUIDv7(),
    lobby_id,
    namespace_id,
    kind,
    address: '',
    client: UNLIMITED_CLIENT.name,
    players_max: UNLIMITED_CLIENT.players_max,
    request_number,
    ticket: null,
  }));
}

describe('takeSeats: a lobby with one player takes all seats of a round or none', () => {
  const game_modes = {
    even: { max_players: 3 },
    direct_above: { max_players: 2, max_players_direct: 3 },
    direct_below: { max_players: 3, max_players_direct: 2 },
  };
  const lobby_ids = new Map<string, string>();
  let game: TestGame;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { game_modes });
    for (const mode of Object.keys(game_modes)) {
      lobby_ids.set(mode, (await seatOf(find(muster, game, { game_modes: [mode] }))).lobby_id);
    }
  });

  test.each([
    { mode: 'even', finds: 3, joins: 0, is_taken: false },
    { mode: 'even', finds: 2, joins: 1, is_taken: false },
    { mode: 'direct_above', finds: 2, joins: 0, is_taken: false },
    { mode: 'direct_above', finds: 1, joins: 2, is_taken: false },
    { mode: 'direct_above', finds: 0, joins: 3, is_taken: false },
    { mode: 'direct_below', finds: 3, joins: 0, is_taken: false },
    { mode: 'direct_below', finds: 0, joins: 2, is_taken: false },
    { mode: 'direct_below', finds: 2, joins: 1, is_taken: false },
    { mode: 'even', finds: 1, joins: 1, is_taken: true },
    { mode: 'even', finds: 0, joins: 2, is_taken: true },
    { mode: 'direct_above', finds: 0, joins: 2, is_taken: true },
    // The find first, then the join: each is within its maximum.
    { mode: 'direct_above', finds: 1, joins: 1, is_taken: true },
    { mode: 'direct_below', finds: 1, joins: 1, is_taken: true },
    { mode: 'direct_below', finds: 2, joins: 0, is_taken: true },
  ])('$mode: $finds finds and $joins joins: $is_taken', async ({ mode, finds, joins, is_taken }) => {
    const place = { lobby_id: lobby_ids.get(mode) ?? '', namespace_id: game.namespace_id };
    const seats = [...proposeSeats('find', finds, place), ...proposeSeats('join', joins, place)];
    const { accepting } = await tryOut((tx) => takeSeats(tx, seats, moments()));
    expect(accepting.map(({ player_count }) => player_count)).toEqual(is_taken ? [1 + finds + joins] : []);
  });

  test('stopLobby: with only_if_empty, a lobby with a player does not end', async () => {
    const lobby = { lobby_id: lobby_ids.get('even') ?? '', namespace_id: game.namespace_id };
    const now = muster.clock.now();
    const stop = (only_if_empty: boolean) =>
      tryOut((tx) => stopLobby(tx, lobby, { reason: 'idle', now, only_if_empty }));
    expect(await stop(true)).toBeUndefined();
    expect(await stop(false)).toMatchObject({ ...lobby, stop_reason: 'idle', player_count: 0 });
  });
});

test('setReady: a lobby becomes ready once, and not after it has stopped', async () => {
  const game = await makeControlledGame(muster, { is_ready: false });
  const finding = find(muster, game);
  const lobby_id = await waitForFirstLobby(muster, game);
  const lobby = await selectLobby(database.queries, lobby_id);
  if (!lobby) throw new Error('the lobby runs');
  const { now, deadline } = moments();
  const ready = async (tx: Tx) => (await setReady(tx, lobby, { now, deadline, ports: {} }))?.lobby_id;
  expect(await tryOut(async (tx) => [await ready(tx), await ready(tx)])).toEqual([lobby_id, undefined]);
  const after_stop = await tryOut(async (tx) => {
    await stopLobby(tx, lobby, { reason: 'idle', now, only_if_empty: false });
    return await ready(tx);
  });
  expect(after_stop).toBeUndefined();
  await (await connectGameServer(muster, game, lobby_id)).ready();
  await seatOf(finding);
});

test('takeSeats: without a queue, a round takes the same seats as with one, if no find waits', async () => {
  const game_modes = { default: { max_players: 6, max_players_direct: 8, max_players_party: 7 } };
  const game = await makeControlledGame(muster, { game_modes });
  const { lobby_id } = await seatOf(find(muster, game));
  const { namespace_id } = game;
  const outcomes = new Set<string>();
  for (let round = 0; round < 100; round += 1) {
    const chance = openChance(SEED, round);
    const requests = Array.from({ length: 1 + chance.below(6) }, (_, request_number) => {
      const kind = chance.pick(['find', 'party', 'join'] as const);
      const client = {
        client: chance.pick(['a', 'b', 'c']),
        players_max: chance.pick([1, 2, 4, 5_000]),
        request_number,
      };
      const seats = proposeSeats(kind, kind === 'party' ? 2 : 1, { lobby_id, namespace_id });
      return seats.map((seat) => ({ ...seat, ...client }));
    });
    const take = (has_queue: boolean) => tryOut((tx) => takeSeats(tx, requests.flat(), moments(), { has_queue }));
    const taken = await take(true);
    expect(await take(false)).toEqual(taken);
    outcomes.add(`${taken.accepting.length} ${taken.over_limit.length > 0}`);
  }
  expect([...outcomes].sort()).toEqual(['0 false', '0 true', '1 false', '1 true']);
});

test('setConnected: players connect without new index entries, because their pages have room', async () => {
  const { namespace_id, ...game } = await makeControlledGame(muster, { game_modes: { default: { max_players: 1 } } });
  const { lobby_id } = await seatOf(find(muster, { ...game, namespace_id }));
  const seats = proposeSeats('join', 900, { lobby_id, namespace_id });
  const counted = await tryOut(async (tx) => {
    await tx.execute(sql`update lobbies set max_players_direct = 1000 where lobby_id = ${lobby_id}`);
    await takeSeats(tx, seats, moments());
    return await countUpdates(tx, 'players', () => setConnected(tx, seats, muster.clock.now()));
  });
  expect(counted.updated).toBe(seats.length);
  expect(counted.noted).toBeLessThan(seats.length / 20);
});

class RolledBack extends Error {}

/** Runs a transaction and rolls it back. */
async function tryOut<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
  const tried = Promise.withResolvers<Result>();
  const trying = database.transact(async (tx) => {
    tried.resolve(await work(tx));
    throw new RolledBack();
  });
  await expect(trying).rejects.toBeInstanceOf(RolledBack);
  return await tried.promise;
}

describe('rounds: a process without notifications', () => {
  const openRounds = (on = database) => openUnnotifiedRounds({ database: on, clock: muster.clock });

  test('reads again before it creates a lobby, and so finds a free seat', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 2 } } });
    const [one, two] = [await seatOf(find(muster, game)), await seatOf(find(muster, game))];
    const rounds = openRounds();
    const seat = (may_create: boolean) => rounds.takeSeat(requestSeat(game, { may_create }));
    await expect(seat(false)).rejects.toMatchObject({ code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' });
    await (await connectGameServer(muster, game, one.lobby_id)).disconnected(two.player_token);
    expect((await seat(true)).lobby_id).toBe(one.lobby_id);
  });

  test('takes a cached seat by one statement, and refuses after two reads at most', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3 } } });
    await seatOf(find(muster, game));
    const { database: counting, counted } = countQueries(database);
    const rounds = openRounds(counting);
    const seat = () =>
      rounds.takeSeat({ ...requestSeat(game, { may_create: true }), lobby_count_max: 1 } as SeatRequest);
    await seat();
    const before = counted();
    await seat();
    expect(counted() - before).toBe(1);
    await expect(seat()).rejects.toMatchObject({ code: 'MATCHMAKER_TOO_MANY_LOBBIES' });
    expect(counted() - before).toBeLessThanOrEqual(3);
  });

  test('refuses a client over its limit by one statement and one read of the lobby', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 10 } } });
    await seatOf(find(muster, game));
    const { database: counting, counted } = countQueries(database);
    const rounds = openRounds(counting);
    const seat = async (name: string) => {
      const before = counted();
      const client = { name, players_max: 1 };
      const seated = await rounds.takeSeat({ ...requestSeat(game), client }).catch(({ code }) => code);
      return { outcome: typeof seated === 'string' ? seated : 'seated', statements: counted() - before };
    };
    await seat('the first client, which makes the cache read the namespace');
    expect(await seat('a')).toEqual({ outcome: 'seated', statements: 1 });
    expect(await seat('a')).toEqual({ outcome: 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', statements: 2 });
    expect(await seat('b')).toEqual({ outcome: 'seated', statements: 1 });
  });

  test('does not find a closed lobby, and finds it once it is open again', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, lobby_id);
    const rounds = openRounds();
    const seat = () => rounds.takeSeat(requestSeat(game));
    expect((await seat()).lobby_id).toBe(lobby_id);
    await game_server.setClosed(true);
    await expect(seat()).rejects.toMatchObject({ code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' });
    await game_server.setClosed(false);
    expect((await seat()).lobby_id).toBe(lobby_id);
  });

  test('drops its planned seats if the lobby does not accept them, so no free seat is lost', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 10 } } });
    const other = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const rounds = openRounds();
    const seat = (of: typeof game) => rounds.takeSeat(requestSeat(of));
    await seat(game);
    // Another process seats six more: eight of ten, of which the cache has two.
    await takeSeats(
      database.queries,
      proposeSeats('find', 6, { lobby_id, namespace_id: game.namespace_id }),
      moments(),
    );
    // While the first find is decided, the others wait for the next round.
    const outcomes = await Promise.allSettled([seat(other), ...Array.from({ length: 9 }, () => seat(game))]);
    expect(outcomes.slice(1).filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  });

  test('reads what another process changed between two of its own commits', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: {}, other: {} } });
    const { lobby_id } = await seatOf(find(muster, game));
    const rounds = openRounds();
    expect((await rounds.takeSeat(requestSeat(game))).lobby_id).toBe(lobby_id);
    const elsewhere = await seatOf(find(muster, game, { game_modes: ['other'] }));
    expect((await rounds.takeSeat(requestSeat(game))).lobby_id).toBe(lobby_id);
    expect((await rounds.takeSeat(requestSeat(game, { game_mode: 'other' }))).lobby_id).toBe(elsewhere.lobby_id);
  });

  test('refuses no find because of a seat that was planned before it, from the cache, and not taken', async () => {
    const maxima = { max_players: 2, max_players_party: 4, max_players_direct: 4 };
    const game = await makeControlledGame(muster, { game_modes: { default: maxima } });
    const other = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const { game_id, namespace_id, address, client, version_id } = { ...game, ...requestSeat(game) };
    const search = { version_id, game_modes: ['default'], regions: ['local'], tags: {} };
    const waiting = { namespace_id, ticket: Bun.randomUUIDv7(), owner: Bun.randomUUIDv7(), client: 'waits', seats: 1 };
    const lease = { lease_ms: 60_000, enter_ts: moments().now, players_max: 1 };
    await database.transact((tx) => insertQueued(tx, { ...waiting, ...lease, ...search }));
    const rounds = openRounds();
    const join = (of: typeof client) =>
      rounds.takeSeat({
        kind: 'join',
        player_id: Bun.randomUUIDv7(),
        game_id,
        namespace_id,
        address,
        lobby_id,
        client: of,
      });
    await join(client);
    // Two seats are taken, so two of four are free for a party. In the cache, they are reserved for the waiting find.
    await deleteQueued(database.queries, { ...waiting, ...lease });
    const party = { ...requestSeat(game), others: [Bun.randomUUIDv7()] };
    // While the first find is decided, the others wait for the next round.
    const outcomes = await Promise.allSettled([
      rounds.takeSeat(requestSeat(other)),
      rounds.takeSeat(party),
      join({ name: 'a client that may have no players', players_max: 0 }),
    ]);
    expect(outcomes.slice(1)).toMatchObject([
      { status: 'fulfilled', value: { lobby_id } },
      { status: 'rejected', reason: { code: 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE' } },
    ]);
  });

  test('refuses no join because of a seat that was planned before it, in a lobby that closed meanwhile', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3 } } });
    const other = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, lobby_id);
    let closes = false;
    const rounds = openUnnotifiedRounds({
      database,
      clock: muster.clock,
      change: ({ read }) => ({
        async read(namespace_id, options) {
          const index = await read(namespace_id, options);
          if (closes && options.is_fresh) await game_server.setClosed(true);
          return index;
        },
      }),
    });
    const one = requestSeat(game);
    await rounds.takeSeat(one);
    closes = true;
    const { game_id, namespace_id, address, client } = one;
    const place = { game_id, namespace_id, address, client, lobby_id };
    // While the first find is decided, the others wait for the next round. The find is planned in the last free seat.
    const outcomes = await Promise.allSettled([
      rounds.takeSeat(requestSeat(other)),
      rounds.takeSeat(requestSeat(game)),
      rounds.takeSeat({ kind: 'join', ...place, player_id: Bun.randomUUIDv7() }),
    ]);
    expect(outcomes.slice(1)).toMatchObject([
      { status: 'rejected', reason: { code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' } },
      { status: 'fulfilled', value: { lobby_id } },
    ]);
  });

  test('decides requests again in the order in which they came', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3 } } });
    const other = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, lobby_id);
    let fresh_reads = Number.NEGATIVE_INFINITY;
    const rounds = openUnnotifiedRounds({
      database,
      clock: muster.clock,
      change: ({ read }) => ({
        async read(namespace_id, options) {
          fresh_reads += options.is_fresh ? 1 : 0;
          if (fresh_reads === 2) await game_server.setClosed(false);
          const index = await read(namespace_id, options);
          // Closes the lobby after the first plan, so that it does not take the first find.
          if (fresh_reads === 1) await game_server.setClosed(true);
          return index;
        },
      }),
    });
    await rounds.takeSeat(requestSeat(game));
    fresh_reads = 0;
    // While the find in the other game is decided, these wait for the next round. There is one free seat.
    const [, ...outcomes] = await Promise.allSettled([
      rounds.takeSeat(requestSeat(other)),
      rounds.takeSeat(requestSeat(game)),
      rounds.takeSeat(requestSeat(game)),
    ]);
    expect(outcomes).toMatchObject([
      { status: 'fulfilled', value: { lobby_id } },
      { status: 'rejected', reason: { code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' } },
    ]);
  });

  test('drops its planned seats if their commit fails, so the seats stay free', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3 } } });
    const { lobby_id } = await seatOf(find(muster, game));
    let fails = false;
    const rounds = openRounds(
      watchQueries(database, () => {
        if (fails) throw new Error('the commit failed');
      }),
    );
    await rounds.takeSeat(requestSeat(game));
    fails = true;
    await expect(rounds.takeSeat(requestSeat(game))).rejects.toThrow('the commit failed');
    fails = false;
    expect((await rounds.takeSeat(requestSeat(game))).lobby_id).toBe(lobby_id);
  });

  test('fails only the requests that a round has decided, and not those whose namespace is still being loaded', async () => {
    const [game, other] = [await makeControlledGame(muster), await makeControlledGame(muster)];
    await seatOf(find(muster, game));
    const { lobby_id } = await seatOf(find(muster, other));
    let fails = false;
    const failed = Promise.withResolvers<void>();
    const rounds = openUnnotifiedRounds({
      database: watchQueries(database, () => {
        if (fails) throw new Error('the commit failed');
      }),
      clock: muster.clock,
      change: (cache) => ({
        async load(namespace_id) {
          if (namespace_id === other.namespace_id) await failed.promise;
          await cache.load(namespace_id);
        },
      }),
    });
    await rounds.takeSeat(requestSeat(game));
    fails = true;
    // The last one is in a round with another: the first may be decided alone, while the others wait for the next round.
    const decided = [rounds.takeSeat(requestSeat(game)), rounds.takeSeat(requestSeat(game))];
    const outcome = rounds.takeSeat(requestSeat(other)).catch(({ message }) => message);
    for (const one of await Promise.allSettled(decided)) {
      expect(one).toMatchObject({ status: 'rejected', reason: { message: 'the commit failed' } });
    }
    fails = false;
    failed.resolve();
    expect(await outcome).toMatchObject({ lobby_id });
  });

  test('refuses at once if more lobbies than a request has attempts are on servers that are ending', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const from = sql`lobbies as lobby cross join generate_series(1, 40) where lobby_id = ${lobby_id}`;
    const changes = sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null)`;
    await database.queries.execute(copyLobbies(from, changes));
    const rounds = openRounds();
    await rounds.takeSeat(requestSeat(game));
    await database.queries.execute(sql`
      update servers set destroyed_at = now() where namespace_id = ${game.namespace_id}`);
    await expect(rounds.takeSeat(requestSeat(game))).rejects.toMatchObject({ code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' });
  });

  test('gives no seat in a lobby whose server is ending, also before its notification', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const rounds = openRounds();
    const one = requestSeat(game);
    await rounds.takeSeat(one);
    await database.queries.execute(sql`
      update servers set destroyed_at = now() where namespace_id = ${game.namespace_id}`);
    const { game_id, namespace_id, address, client } = one;
    const place = { game_id, namespace_id, address, client, lobby_id };
    const joining = { kind: 'join', ...place, player_id: Bun.randomUUIDv7() } as const;
    const outcomes = await Promise.allSettled([rounds.takeSeat(requestSeat(game)), rounds.takeSeat(joining)]);
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' } },
      { status: 'rejected', reason: { code: 'MATCHMAKER_LOBBY_STOPPED' } },
    ]);
  });
});
