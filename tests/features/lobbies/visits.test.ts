import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { combineVisits, readVisits } from '../../../src/features/lobbies/developers/developer-api.ts';
import { selectLeft } from '../../../src/features/lobbies/developers/history-store.ts';
import type { PlayerRow } from '../../../src/features/lobbies/tables.ts';
import { holdResults } from '../../support/database/held-results.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { expectForeignLobbiesHidden } from '../../support/lobbies/lobby-tenants.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
const MOMENT = expect.stringMatching(/^\d{4}-.*Z$/);
const PLAYER = { player_id: expect.any(String), create_ts: MOMENT };

describe('visits of a lobby', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3 } } });
  });
  const pathOf = (lobby_id: string) =>
    `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/matchmaker/lobbies/${lobby_id}/visits`;
  const read = (lobby_id: string) => muster.api.ok('GET', pathOf(lobby_id), { token: game.cloud_token });

  test('visits of a lobby of another game, or of an unknown one, are not found', async () => {
    await expectForeignLobbiesHidden(muster, game, pathOf);
  });

  test('show when players got a seat, connected and left, and why, also after its end', async () => {
    const own = await makeControlledGame(muster, { game_modes: { default: { max_players: 4 } } });
    const path = pathOf('').replace(game.game_id, own.game_id).replace(game.namespace_id, own.namespace_id);
    const first = await seatOf(find(muster, own));
    const { lobby_id } = first;
    const readOwn = () =>
      muster.api.ok('GET', path.replace('lobbies/', `lobbies/${lobby_id}`), { token: own.cloud_token });
    await seatOf(find(muster, own));
    const server = await connectGameServer(muster, own, lobby_id);
    expect(outcomeOf(await server.connected(first.player_token))).toBe('200');
    expect(await readOwn()).toMatchObject({ visits: [{ ...PLAYER, connect_ts: MOMENT }, PLAYER], has_earlier: false });
    await server.disconnected(first.player_token);
    const left = { ...PLAYER, connect_ts: MOMENT, remove_ts: MOMENT, remove_reason: 'disconnected' };
    expect((await readOwn()).visits).toEqual([left, PLAYER]);
    const lobby = `/cloud/games/${own.game_id}/matchmaker/lobbies/${lobby_id}`;
    await muster.api.ok('DELETE', lobby, { token: own.cloud_token });
    expect((await readOwn()).visits).toEqual([left, { ...PLAYER, remove_ts: MOMENT, remove_reason: 'lobby_stopped' }]);
  });

  test('a player who leaves while they are read is in them once, as one who left', () => {
    const visit = (player_id: string, second: number, remove_ts: Date | null = null) =>
      ({ player_id, create_ts: new Date(second * 1_000), remove_ts }) as PlayerRow;
    const gone = visit('b', 1, new Date(9_000));
    const seated = [visit('c', 0), visit('b', 1), visit('a', 1)];
    expect(combineVisits(seated, [gone])).toEqual([visit('c', 0), visit('a', 1), gone]);
  });

  test('a player who leaves before those with a seat are read is in them', async () => {
    const own = await makeControlledGame(muster);
    const { lobby_id, player_token } = await seatOf(find(muster, own));
    const server = await connectGameServer(muster, own, lobby_id);
    const { database, hold } = holdResults(muster.database);
    const held = hold({ what: 'query' });
    const reading = readVisits(database.queries, { lobby_id, namespace_id: own.namespace_id });
    await held.reached;
    await server.disconnected(player_token);
    held.release();
    expect((await reading).players).toMatchObject([{ remove_reason: 'disconnected' }]);
  });

  test('are those of the latest 200 players who left, read by the index', async () => {
    const { lobby_id } = await seatOf(find(muster, game));
    const { queries } = muster.database;
    await queries.execute(sql`
      insert into players (player_id, lobby_id, namespace_id, address, create_ts, remove_ts, remove_reason, client_number)
      select gen_random_uuid(), ${lobby_id}::uuid, ${game.namespace_id}::uuid, '10.0.0.1',
        now() - number * interval '1 minute', now() - number * interval '30 s', 'disconnected', null
      from generate_series(1, 300) as number`);
    // Of all others who have left, none is read.
    await queries.execute(sql`
      insert into players (player_id, lobby_id, namespace_id, address, create_ts, remove_ts, remove_reason, client_number)
      select gen_random_uuid(), gen_random_uuid(), ${game.namespace_id}::uuid, '10.0.0.1', now(), now(), 'disconnected', null
      from generate_series(1, 20000)`);
    const { visits, has_earlier } = await read(lobby_id);
    expect([visits.length >= 201, has_earlier]).toEqual([true, true]);
    const times = visits.map(({ create_ts }: { create_ts: string }) => create_ts);
    expect(times).toEqual(times.toSorted());
    await queries.execute(sql`analyze players`);
    const { namespace_id } = game;
    const plan = await queries.execute(sql`explain ${selectLeft(queries, { lobby_id, namespace_id }, 201)}`);
    expect(JSON.stringify(plan)).toContain('players_who_left');
  });
});
