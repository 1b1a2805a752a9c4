import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createLobbyCache } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-cache.ts';
import { takeSeats } from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { after } from '../../../src/platform/clock.ts';
import { holdResults } from '../../support/database/held-results.ts';
import { UNLIMITED_CLIENT } from '../../support/game-limits.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { NO_AVOIDED_LOBBIES } from '../../support/machines/lone-machine.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();

/** Opens the cache of a process without notifications. */
function openCache(database = muster.database) {
  const feed = { subscribe: () => () => {}, observe() {}, async [Symbol.asyncDispose]() {} };
  return createLobbyCache({ database, feed, avoided: NO_AVOIDED_LOBBIES });
}

/** Makes a game whose lobby has one player, and takes a second seat in the lobby without telling a cache. */
async function makeSeats() {
  const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 4 } } });
  const { namespace_id } = game;
  const { lobby_id, player_token } = await seatOf(find(muster, game));
  const host = await connectGameServer(muster, game, lobby_id);
  const now = muster.clock.now();
  const { name: client, players_max } = UNLIMITED_CLIENT;
  const seat = { player_id: Bun.randomUUIDv7(), lobby_id, namespace_id, kind: 'join', address: '' } as const;
  const take = async () => {
    const proposed = [{ ...seat, client, players_max, request_number: 0, ticket: null }];
    const { accepting } = await takeSeats(muster.database.queries, proposed, { now, deadline: after(now, 3_600_000) });
    const [lobby] = accepting;
    if (!lobby) throw new Error('the lobby has free seats');
    return lobby;
  };
  return { namespace_id, lobby_id, player_token, host, take };
}

test('lobby cache: a commit that is applied after a read of later changes does not undo them', async () => {
  const { namespace_id, lobby_id, player_token, host, take } = await makeSeats();
  const cache = openCache();
  await cache.load(namespace_id);
  const read = async () => await cache.read(namespace_id, { is_fresh: true });
  const taken = await take();
  // Meanwhile another player leaves, and another request of this process reads the namespace.
  await host.disconnected(player_token);
  await read();
  cache.applyCommit(namespace_id, taken.changed, taken);
  expect((await read())?.get(lobby_id)?.player_count).toBe(1);
});

test('lobby cache: lobbies that are read again do not undo later changes', async () => {
  const { namespace_id, lobby_id, player_token, host, take } = await makeSeats();
  const { database, hold } = holdResults(muster.database);
  const cache = openCache(database);
  await cache.load(namespace_id);
  const read = async () => await cache.read(namespace_id, { is_fresh: true });
  await take();
  const held = hold();
  const reloading = cache.reload(namespace_id, [lobby_id]);
  await held.reached;
  await host.disconnected(player_token);
  await read();
  held.release();
  await reloading;
  expect((await read())?.get(lobby_id)?.player_count).toBe(1);
});

test('lobby cache: lobbies that are read again do not undo what the read before had, while another one runs', async () => {
  const { namespace_id, lobby_id, player_token, host, take } = await makeSeats();
  const selects = holdResults(muster.database);
  const executes = holdResults(selects.database, 'execute');
  const cache = openCache(executes.database);
  await cache.load(namespace_id);
  const read = async () => await cache.read(namespace_id, { is_fresh: true });
  await take();
  const reload = selects.hold();
  const reloading = cache.reload(namespace_id, [lobby_id]);
  await reload.reached;
  await host.disconnected(player_token);
  await read();
  const second_read = executes.hold();
  const reading = read();
  await second_read.reached;
  reload.release();
  await reloading;
  second_read.release();
  expect((await reading)?.get(lobby_id)?.player_count).toBe(1);
  expect((await read())?.get(lobby_id)?.player_count).toBe(1);
});

test('lobby cache: of two reads at once, the slower one does not bring back what the other one has replaced', async () => {
  const { namespace_id, lobby_id, player_token, host, take } = await makeSeats();
  const { database, hold } = holdResults(muster.database, 'execute');
  const cache = openCache(database);
  await cache.load(namespace_id);
  const read = async () => await cache.read(namespace_id, { is_fresh: true });
  await take();
  // The first query of a read gets the versions, the second one the changes.
  const held = hold({ skip: 1 });
  const slower = read();
  await held.reached;
  await host.disconnected(player_token);
  const faster = read();
  // Long enough for the second read, unless it waits for the first.
  await Promise.race([faster, makeRoundTrips(20)]);
  held.release();
  await slower;
  expect((await faster)?.get(lobby_id)?.player_count).toBe(1);
});

async function makeRoundTrips(count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) await muster.database.queries.execute(sql`select 1`);
}
