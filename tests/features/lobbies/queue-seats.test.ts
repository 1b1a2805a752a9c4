import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { countLobby } from '../../../src/features/lobbies/matchmaking/new-lobbies/create-lobbies-store.ts';
import {
  deleteQueued,
  deleteWithEndedLeases,
  readClock,
  renewLeases,
} from '../../../src/features/lobbies/matchmaking/queue/queue-store.ts';
import { type ProposedSeat, takeSeats } from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { topics } from '../../../src/features/topics.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { readVersions } from '../../../src/platform/watch/versions.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();
let database: Database;
beforeAll(() => {
  database = openDatabase(muster.database_address, 4);
});
afterAll(() => database[Symbol.asyncDispose]());

const OWNER = crypto.randomUUID();

/** Creates a lobby with one player, and functions that propose seats in it. */
async function makeLobby(max_players: number) {
  const game = await makeControlledGame(muster, { game_modes: { default: { max_players } } });
  const { lobby_id } = await seatOf(find(muster, game));
  const { namespace_id } = game;
  return {
    namespace_id,
    seats: (
      request_number: number,
      client: string,
      more: Partial<ProposedSeat> & { count?: number } = {},
    ): ProposedSeat[] => {
      const { count = 1, ...members } = more;
      const shared = {
        lobby_id,
        namespace_id,
        kind: 'find',
        address: '',
        client,
        players_max: 2,
        request_number,
      } as const;
      return Array.from({ length: count }, () => {
        return { player_id: Bun.randomUUIDv7(), ticket: null, ...shared, ...members };
      });
    },
    take: async (...seats: ProposedSeat[][]) => {
      const now = muster.clock.now();
      const { accepting, over_limit } = await takeSeats(database.queries, seats.flat(), { now, deadline: now });
      return { player_count: accepting[0]?.player_count, over_limit };
    },
    /** Takes seats without a queue, and returns the players of the lobby. */
    takeWithoutQueue: async (...seats: ProposedSeat[][]) => {
      const now = muster.clock.now();
      const moments = { now, deadline: now };
      const { accepting } = await takeSeats(database.queries, seats.flat(), moments, { has_queue: false });
      return accepting[0]?.player_count;
    },
    versions: () => readVersions(database.queries, [topics.lobbiesOf(namespace_id), topics.connectedIn(lobby_id)]),
    /** Adds a find for the lobby to the queue, and returns its ticket. */
    async wait(
      seats = 1,
      {
        version_id = null,
        mode = 'default',
        region = 'local',
        lease_ts = 'infinity',
      }: { version_id?: string | null; mode?: string; region?: string; lease_ts?: string } = {},
    ): Promise<string> {
      const rows = await database.queries.execute<{ ticket: string }>(sql`
        insert into queued_finds (namespace_id, ticket, owner, lease_ts, client, seats, version_id, game_modes, regions, tags)
        select namespace_id, gen_random_uuid(), ${OWNER}::uuid, ${lease_ts}::timestamptz, '', ${seats},
          coalesce(${version_id}::uuid, version_id), array[${mode}], array[${region}], '{}'
        from namespaces where namespace_id = ${namespace_id} returning ticket`);
      return rows[0]?.ticket ?? '';
    },
    lobby_id,
    game,
    /** Returns when the lobby became empty; null while it has players. */
    async idleSince(): Promise<string | null | undefined> {
      const rows = await database.queries.execute<{ idle_ts: string | null }>(sql`
        select idle_ts::text from lobbies where lobby_id = ${lobby_id}`);
      return rows[0]?.idle_ts;
    },
    async tickets(): Promise<string[]> {
      const rows = await database.queries.execute<{ ticket: string }>(sql`
        select ticket from queued_finds where namespace_id = ${namespace_id} order by place`);
      return rows.map(({ ticket }) => ticket);
    },
  };
}

test('takeSeats: no seat goes to a later find while earlier ones wait for the lobby', async () => {
  const lobby = await makeLobby(4);
  const [first, second] = [await lobby.wait(), await lobby.wait()];
  const [a, b, late] = [
    lobby.seats(0, 'a', { ticket: first }),
    lobby.seats(1, 'b', { ticket: second }),
    lobby.seats(2, 'c'),
  ];
  expect(await lobby.take(late)).toMatchObject({ player_count: undefined });
  expect(await lobby.take(b)).toMatchObject({ player_count: undefined });
  expect(await lobby.take(a, late)).toMatchObject({ player_count: undefined });
  expect(await lobby.tickets()).toEqual([first, second]);
  expect(await lobby.take(a, b, late)).toMatchObject({ player_count: 4 });
  expect(await lobby.tickets()).toEqual([]);
});

test('takeSeats: a join need not wait for the queue, nor a find for one that could never fit', async () => {
  const lobby = await makeLobby(4);
  await lobby.wait(5);
  expect(await lobby.take(lobby.seats(0, 'a'))).toMatchObject({ player_count: 2 });
  await lobby.wait(4);
  expect(await lobby.take(lobby.seats(0, 'b'))).toMatchObject({ player_count: undefined });
  expect(await lobby.take(lobby.seats(0, 'b', { kind: 'join' }))).toMatchObject({ player_count: 3 });
});

test('takeSeats: without a queue, a find that waits keeps all later finds of its namespace from seats, but no join', async () => {
  const lobby = await makeLobby(8);
  expect(await lobby.takeWithoutQueue(lobby.seats(0, 'a'))).toBe(2);
  await lobby.wait(1, { region: 'far' });
  expect(await lobby.takeWithoutQueue(lobby.seats(0, 'b'))).toBeUndefined();
  expect(await lobby.takeWithoutQueue(lobby.seats(0, 'b', { kind: 'party', count: 2 }))).toBeUndefined();
  expect(await lobby.takeWithoutQueue(lobby.seats(0, 'b', { kind: 'join' }))).toBe(3);
  expect(await lobby.take(lobby.seats(0, 'c'))).toMatchObject({ player_count: 4 });
});

test('takeSeats: a find leaves the queue of its own namespace only, even if another one has the same ticket', async () => {
  const [here, there] = [await makeLobby(4), await makeLobby(4)];
  const ticket = await here.wait();
  await database.queries.execute(sql`
    insert into queued_finds (namespace_id, ticket, owner, lease_ts, client, seats, version_id, game_modes, regions, tags)
    select ${there.namespace_id}::uuid, ticket, owner, lease_ts, client, seats, version_id, game_modes, regions, tags
    from queued_finds where ticket = ${ticket}::uuid`);
  const join = there.seats(1, 'b', { kind: 'join' });
  expect(await here.take(here.seats(0, 'a', { ticket }), join)).toMatchObject({ over_limit: [] });
  expect(await here.tickets()).toEqual([]);
  expect(await there.tickets()).toEqual([ticket]);
});

describe('takeSeats: while a namespace moves to another version', () => {
  const ANOTHER = { version_id: crypto.randomUUID() };

  test('takeSeats: a find that waits by the other version is not overtaken, in any region', async () => {
    const lobby = await makeLobby(4);
    const ticket = await lobby.wait(1, { ...ANOTHER, region: 'far' });
    expect(await lobby.take(lobby.seats(0, 'a'))).toMatchObject({ player_count: undefined });
    expect(await lobby.take(lobby.seats(0, 'b', { ticket }))).toMatchObject({ player_count: 2 });
    expect(await lobby.take(lobby.seats(0, 'a'))).toMatchObject({ player_count: 3 });
  });

  test('takeSeats: a find that waits for another game mode or region does not delay other finds', async () => {
    const lobby = await makeLobby(4);
    await lobby.wait(1, { ...ANOTHER, mode: 'another' });
    await lobby.wait(1, { region: 'far' });
    expect(await lobby.take(lobby.seats(0, 'a'))).toMatchObject({ player_count: 2 });
  });
});

test("takeSeats: a request over its client's limit is left out, and notifies no watcher", async () => {
  const lobby = await makeLobby(8);
  const round = [lobby.seats(0, 'a'), lobby.seats(1, 'b', { count: 2, kind: 'party' })];
  expect(await lobby.take(...round)).toEqual({ player_count: 4, over_limit: [] });
  const versions = await lobby.versions();
  const party = lobby.seats(0, 'd', { count: 3, kind: 'party' });
  expect(await lobby.take(party)).toEqual({
    player_count: undefined,
    over_limit: [{ request_number: 0, is_over_alone: true }],
  });
  expect(await lobby.take(lobby.seats(0, 'b'))).toMatchObject({ player_count: undefined });
  expect(await lobby.versions()).toEqual(versions);
  const [one, over] = [lobby.seats(0, 'c'), lobby.seats(1, 'b')];
  expect(await lobby.take(one, over)).toEqual({
    player_count: 5,
    over_limit: [{ request_number: 1, is_over_alone: true }],
  });
  expect(await lobby.versions()).not.toEqual(versions);
});

test('takeSeats: a round that no lobby accepts notifies no watcher, nor those of the queue', async () => {
  const lobby = await makeLobby(2);
  const ticket = await lobby.wait(2);
  const queue = topics.queueOf(lobby.namespace_id);
  const versions = async () => [await lobby.versions(), await readVersions(database.queries, [queue])];
  const before = await versions();
  const party = lobby.seats(0, 'a', { count: 2, kind: 'party', ticket });
  expect(await lobby.take(party, lobby.seats(1, 'b'))).toMatchObject({ player_count: undefined });
  await (await connectGameServer(muster, lobby.game, lobby.lobby_id)).setClosed(true);
  const closed = await versions();
  expect(closed).not.toEqual(before);
  expect(await lobby.take(lobby.seats(0, 'c'))).toMatchObject({ player_count: undefined });
  expect(await versions()).toEqual(closed);
});

test("takeSeats: a seat notifies watchers of the list of lobbies, and not those of the lobby's connected players", async () => {
  const lobby = await makeLobby(8);
  const before = await lobby.versions();
  expect(await lobby.take(lobby.seats(0, 'a'), lobby.seats(1, 'b'))).toMatchObject({ player_count: 3 });
  const [list, connected] = [topics.lobbiesOf(lobby.namespace_id), topics.connectedIn(lobby.lobby_id)];
  expect(await lobby.versions()).toEqual(new Map([...before, [list, (before.get(list) ?? 0) + 1]]));
  expect(before.get(connected)).toBe(0);
});

test('takeSeats: a waiting find over its limit does not delay later finds', async () => {
  const lobby = await makeLobby(8);
  const tickets = [await lobby.wait(2), await lobby.wait(), await lobby.wait()];
  const [party, over, after] = [
    lobby.seats(0, 'a', { count: 2, kind: 'party', ticket: tickets[0] ?? null }),
    lobby.seats(1, 'a', { ticket: tickets[1] ?? null }),
    lobby.seats(2, 'b', { ticket: tickets[2] ?? null }),
  ];
  expect(await lobby.take(party, over, after)).toEqual({
    player_count: 4,
    over_limit: [{ request_number: 1, is_over_alone: true }],
  });
  expect(await lobby.tickets()).toEqual([tickets[1] ?? '']);
});

test('takeSeats: a find that exceeds the limit only together with a refused party is not refused, and later finds wait for it', async () => {
  const lobby = await makeLobby(8);
  const tickets = [await lobby.wait(3), await lobby.wait(), await lobby.wait()];
  const [party, single, after] = [
    lobby.seats(0, 'a', { count: 3, kind: 'party', ticket: tickets[0] ?? null }),
    lobby.seats(1, 'a', { ticket: tickets[1] ?? null }),
    lobby.seats(2, 'b', { ticket: tickets[2] ?? null }),
  ];
  expect(await lobby.take(party, single, after)).toEqual({
    player_count: undefined,
    over_limit: [
      { request_number: 0, is_over_alone: true },
      { request_number: 1, is_over_alone: false },
    ],
  });
});

test('renewLeases: renews the given finds, and returns all that the process has in the queue', async () => {
  const lobby = await makeLobby(2);
  const { namespace_id } = lobby;
  const ended = { lease_ts: 'now' };
  const [kept, given_up] = [await lobby.wait(1, ended), await lobby.wait(1, ended)];
  const finds = [{ namespace_id, ticket: kept }];
  const renew = (owner: string) => renewLeases(database.queries, { owner, finds, lease_ms: 60_000 });
  expect(await renew(crypto.randomUUID())).toEqual([]);
  const queued = (await renew(OWNER)).filter((one) => one.namespace_id === namespace_id);
  expect(queued.map(({ ticket }) => ticket).sort()).toEqual([kept, given_up].sort());
  const now = await readClock(database.queries);
  expect(await deleteWithEndedLeases(database.queries, namespace_id, now)).toBe(1);
  expect(await lobby.tickets()).toEqual([kept]);
});

test('deleteQueued: a process takes only its own waiters out of the queue, and no later one with the ticket', async () => {
  const lobby = await makeLobby(2);
  const ticket = await lobby.wait();
  const { namespace_id } = lobby;
  const [row] = await database.queries.execute<{ enter_ts: string }>(sql`
    select enter_ts from queued_finds where ticket = ${ticket}`);
  const enter_ts = new Date(row?.enter_ts ?? '');
  const earlier = new Date(enter_ts.getTime() - 1);
  await deleteQueued(database.queries, { namespace_id, ticket, owner: crypto.randomUUID(), enter_ts });
  await deleteQueued(database.queries, { namespace_id, ticket, owner: OWNER, enter_ts: earlier });
  expect(await lobby.tickets()).toEqual([ticket]);
  await deleteQueued(database.queries, { namespace_id, ticket, owner: OWNER, enter_ts });
  expect(await lobby.tickets()).toEqual([]);
});

test('deleteWithEndedLeases: a waiter whose lease has ended loses its position, one whose lease runs keeps it', async () => {
  const lobby = await makeLobby(2);
  await lobby.wait(1, { lease_ts: 'now' });
  const living = await lobby.wait();
  const now = await readClock(database.queries);
  expect(await deleteWithEndedLeases(database.queries, lobby.namespace_id, now)).toBe(1);
  expect(await lobby.tickets()).toEqual([living]);
});

test('takeSeats: a closed lobby takes joins, but neither finds nor parties', async () => {
  const lobby = await makeLobby(8);
  await (await connectGameServer(muster, lobby.game, lobby.lobby_id)).setClosed(true);
  const not_seated = { player_count: undefined };
  expect(await lobby.take(lobby.seats(0, 'a'))).toMatchObject(not_seated);
  expect(await lobby.take(lobby.seats(0, 'b', { count: 2, kind: 'party' }))).toMatchObject(not_seated);
  expect(await lobby.take(lobby.seats(0, 'c', { kind: 'join' }))).toMatchObject({ player_count: 2 });
});

test('takeSeats: an empty lobby that gets a player is no longer idle', async () => {
  const lobby = await makeLobby(8);
  await database.queries.execute(sql`update lobbies set idle_ts = now() where lobby_id = ${lobby.lobby_id}`);
  expect(await lobby.take(lobby.seats(0, 'a'))).toMatchObject({ player_count: 2 });
  expect(await lobby.idleSince()).toBeNull();
});

test('countLobby: the earlier of two waiting finds creates its lobby first, wherever it searches', async () => {
  const { game, ...lobby } = await makeLobby(4);
  const earlier = await lobby.wait(1, { region: 'far' });
  const later = await lobby.wait();
  const place = { game_mode: 'default', region: 'local', tags: {}, max_players_normal: 4, max_players_party: 4 };
  const made = {
    lobby_id: crypto.randomUUID(),
    namespace_id: game.namespace_id,
    version_id: game.version_id,
    ...place,
  };
  const count = async (ticket: string) => {
    const player = {
      player_id: Bun.randomUUIDv7(),
      address: '',
      client: ticket,
      players_max: 4,
      request_number: 0,
      ticket,
    };
    return (await database.transact((tx) => countLobby(tx, made, [player], 8))).changed;
  };
  expect(await count(later)).toBeUndefined();
  expect(await count(earlier)).toBeGreaterThan(0);
  expect(await count(later)).toBeGreaterThan(0);
});

test('countLobby: a lobby that is refused notifies no watcher, and leaves no topic of its own', async () => {
  const { game, ...lobby } = await makeLobby(1);
  await lobby.wait(1, { region: 'far' });
  const ticket = await lobby.wait();
  const { namespace_id, version_id } = game;
  const refused_id = crypto.randomUUID();
  const place = { game_mode: 'default', region: 'local', tags: {}, max_players_normal: 4, max_players_party: 4 };
  const refused = { lobby_id: refused_id, namespace_id, version_id, ...place };
  const player = { player_id: Bun.randomUUIDv7(), address: '', client: '', players_max: 4, request_number: 0 };
  const watched = [topics.lobbiesOf(namespace_id), topics.queueOf(namespace_id), topics.lobby(refused_id)];
  const versions = () => readVersions(database.queries, watched);
  const before = await versions();
  for (const one of [ticket, null]) {
    const count = database.transact((tx) => countLobby(tx, refused, [{ ...player, ticket: one }], 8));
    expect((await count).changed).toBeUndefined();
  }
  expect(await versions()).toEqual(before);
  const left = await database.queries.execute(sql`select 1 from topics where topic = ${topics.lobby(refused_id)}`);
  expect(left).toHaveLength(0);
});
