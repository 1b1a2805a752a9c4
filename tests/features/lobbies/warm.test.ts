import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { missingLobbies, type WarmPool } from '../../../src/features/lobbies/rules.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { deploy, makeGame, setLimits, type TestGame } from '../../support/game.ts';
import { connectGameServer, makeControlledGame } from '../../support/game-server.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

interface ListedLobby {
  lobby_id: string;
  lobby_group_name_id: string;
  is_ready: boolean;
  is_idle: boolean;
  is_outdated: boolean;
  is_closed: boolean;
}

let opened: TestService;
beforeAll(async () => {
  opened = await openTestService();
});
afterAll(() => opened[Symbol.asyncDispose]());

const listLobbies = async ({ game_id, namespace_id, cloud_token: token }: TestGame): Promise<ListedLobby[]> =>
  (
    await opened.api.ok('GET', `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`, {
      token,
    })
  ).lobbies;
const find = (game: TestGame) =>
  opened.api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body: { game_modes: ['default'] } });
const idleOf = async (game: TestGame) =>
  (await listLobbies(game)).filter(({ is_idle, is_ready }) => is_idle && is_ready);
const waitForIdle = (game: TestGame, count: number) =>
  waitFor(async () => {
    const idle = await idleOf(game);
    return idle.length === count && (await listLobbies(game)).every(({ is_ready }) => is_ready) ? idle : undefined;
  }, `${count} idle lobbies`);
const reportsOf = ({ namespace_id }: TestGame) =>
  opened.events.filter((event) => event.event === 'lobby_not_kept_warm' && event.namespace_id === namespace_id);

const warm = (min: number, max = min) => ({ idle_lobbies: { min, max } });

describe('warm lobbies', () => {
  test('run before the first find; the player gets one, and another takes its place', async () => {
    const game = await makeRoomGame(opened, { source: READY_SOURCE, max_players: 1, mode: warm(2) });
    const ready = (await waitForIdle(game, 2)).map(({ lobby_id }) => lobby_id);
    const { lobby } = await find(game);
    expect(ready).toContain(lobby.lobby_id);
    const after = (await waitForIdle(game, 2)).map(({ lobby_id }) => lobby_id);
    expect(after).not.toContain(lobby.lobby_id);
    expect(await listLobbies(game)).toHaveLength(3);
  });

  test('are of the current version of the namespace', async () => {
    const game = await makeRoomGame(opened, { source: READY_SOURCE, mode: warm(1) });
    const [old] = await waitForIdle(game, 1);
    const docker = { image_id: game.build_id, ports: { game: { port: 80, protocol: 'http' } } };
    await deploy(opened.api, game, { game_modes: { default: warm(2) }, docker });
    const moved = await waitFor(async () => {
      const all = await listLobbies(game);
      return all.length === 2 && all.every(({ is_ready, is_outdated }) => is_ready && !is_outdated) ? all : undefined;
    }, 'the lobbies of the new version');
    expect(moved.map(({ lobby_id }) => lobby_id)).not.toContain(old?.lobby_id ?? '');
    await deploy(opened.api, game, { game_modes: { default: {} }, docker });
    await waitFor(async () => (await listLobbies(game)).length === 0, 'the old lobbies to end');
  });

  test('are not replaced by a private lobby without players', async () => {
    const mode = { ...warm(1), actions: { create: { enabled: true, enable_private: true } } };
    const game = await makeControlledGame(opened, { game_modes: { default: mode } });
    const [kept] = await waitForIdle(game, 1);
    const made = await opened.api.ok('POST', '/matchmaker/lobbies/create', {
      token: game.public_token,
      body: { game_mode: 'default' },
    });
    const game_server = await connectGameServer(opened, game, made.lobby.lobby_id);
    await game_server.disconnected(made.player.token);
    await waitFor(async () => (await listLobbies(game)).length === 1, 'the private lobby to end');
    expect((await listLobbies(game)).map(({ lobby_id }) => lobby_id)).toEqual([kept?.lobby_id ?? '']);
  });

  test("are limited by the namespace's maximum of lobbies", async () => {
    const game = await makeRoomGame(opened, { source: READY_SOURCE, mode: {} });
    const { game_id, namespace_id, cloud_token: token, build_id } = game;
    const body = { lobby_count_max: 2, max_players: 8 };
    await opened.api.ok('POST', `/cloud/games/${game_id}/namespaces/${namespace_id}/mm-config`, { token, body });
    const docker = { image_id: build_id, ports: { game: { port: 80, protocol: 'http' } } };
    await deploy(opened.api, game, { game_modes: { default: warm(1), other: warm(4) }, docker });
    await waitForIdle(game, 2);
    expect(await listLobbies(game)).toHaveLength(2);
  });

  test('are kept although the version of another game cannot be read', async () => {
    const broken = await makeGame(opened.api, opened.administrator_token);
    await using database = openDatabase(opened.database_address, 1);
    const { namespace_id } = broken;
    await database.queries.execute(sql`
      with broken as (
        insert into versions (version_id, game_id, display_name, config, keeps_warm, create_ts)
        values (gen_random_uuid(), ${broken.game_id}, 'broken', '{"matchmaker":{"game_modes":{"x":null}}}', true, now())
        returning version_id
      )
      update namespaces set version_id = (select version_id from broken) where namespace_id = ${namespace_id}`);
    const game = await makeRoomGame(opened, { source: READY_SOURCE, mode: warm(1) });
    await waitForIdle(game, 1);
    // The second game gets its lobby in a later step than the first.
    await waitForIdle(await makeRoomGame(opened, { source: READY_SOURCE, mode: warm(1) }), 1);
    expect(reportsOf(broken)).toEqual([{ event: 'lobby_not_kept_warm', namespace_id, cause: expect.any(Error) }]);
    await database.queries.execute(sql`
      update versions set keeps_warm = false where game_id = ${broken.game_id}`);
  });

  test('that cannot be created are reported once for each pool', async () => {
    await using database = openDatabase(opened.database_address, 1);
    await database.queries.execute(sql`
      alter table lobbies add constraint no_unlucky_lobbies check (game_mode <> 'unlucky') not valid`);
    const broken = await makeControlledGame(opened, { game_modes: { unlucky: warm(4) } });
    await waitForIdle(await makeRoomGame(opened, { source: READY_SOURCE, mode: warm(1) }), 1);
    await waitForIdle(await makeRoomGame(opened, { source: READY_SOURCE, mode: warm(1) }), 1);
    expect(reportsOf(broken)).toMatchObject([{ game_mode: 'unlucky', region: 'local', cause: expect.any(Error) }]);
    await database.queries.execute(sql`alter table lobbies drop constraint no_unlucky_lobbies`);
    await waitForIdle(broken, 4);
  });

  test('are created once by two machines on one database', async () => {
    // In another datacenter, because it lacks the builds of the first. It checks the lobbies of all.
    await using second = await openTestService({ MUSTER_DATACENTER: 'far' }, { database_of: opened });
    expect(second.config.port).not.toBe(opened.config.port);
    const game = await makeRoomGame(opened, {
      source: READY_SOURCE,
      mode: { ...warm(3, 16), regions: { local: {} } },
    });
    await waitForIdle(game, 3);
    // A second check finds nothing to do: by now it would have created more than three.
    const before = (await listLobbies(game)).map(({ lobby_id }) => lobby_id);
    await find(game);
    await waitForIdle(game, 3);
    expect((await listLobbies(game)).filter(({ lobby_id }) => !before.includes(lobby_id))).toHaveLength(1);
  });

  test('are created in transactions of 16 at most, because each locks the work of a datacenter', async () => {
    await using database = openDatabase(opened.database_address, 1);
    // Without machines, so no server starts and the rows stay as they were inserted.
    await database.queries.execute(sql`
      insert into datacenters (datacenter_id, slug, name, create_ts)
      values (gen_random_uuid(), 'nowhere', 'Nowhere', now())`);
    await database.queries.execute(sql`select pg_notify('muster_changes', '1 datacenters')`);
    const mode = { ...warm(16), regions: { nowhere: {} } };
    const game = await makeControlledGame(opened, { game_modes: { one: mode, two: mode, three: mode } });
    const counts = await waitFor(async () => {
      const rows = await database.queries.execute<{ count: number }>(sql`
        select count(*)::int as count from lobbies where namespace_id = ${game.namespace_id} group by xmin::text`);
      const by_transaction = rows.map(({ count }) => count);
      return by_transaction.reduce((sum, count) => sum + count, 0) === 48 ? by_transaction : undefined;
    }, 'all warm lobbies');
    expect(Math.max(...counts)).toBe(16);
  });
});

describe('a warm lobby that is closed', () => {
  // The other datacenters have no machine any more.
  const warmHere = (min: number, max?: number) => ({ ...warm(min, max), regions: { local: {} } });
  const CLOSING_SOURCE = `
    await fetch(process.env.SERVICE_API_ENDPOINT + '/matchmaker/lobbies/closed', {
      method: 'PUT',
      headers: { authorization: 'Bearer ' + process.env.SERVICE_TOKEN, 'content-type': 'application/json' },
      body: JSON.stringify({ is_closed: true }),
    });
    ${READY_SOURCE}`;
  /** Waits until all pools were checked twice: until two new games, one after the other, have their warm lobbies. */
  async function waitForTwoChecks(): Promise<void> {
    for (const _pass of [1, 2])
      await waitForIdle(await makeRoomGame(opened, { source: READY_SOURCE, mode: warmHere(1) }), 1);
  }

  test('by its server before the first player stays, and is not replaced', async () => {
    const game = await makeRoomGame(opened, { source: CLOSING_SOURCE, mode: warmHere(1, 2) });
    const [first] = await waitForIdle(game, 1);
    expect(first).toMatchObject({ is_closed: true });
    await waitForTwoChecks();
    expect((await listLobbies(game)).map(({ lobby_id }) => lobby_id)).toEqual([first?.lobby_id ?? '']);
  });

  test('for more than five minutes stays, and another is created', async () => {
    const game = await makeRoomGame(opened, { source: CLOSING_SOURCE, mode: warmHere(1) });
    const [first] = await waitForIdle(game, 1);
    expect(first).toMatchObject({ is_closed: true });
    opened.clock.advance(301_000);
    await waitForIdle(game, 2);
    await waitForTwoChecks();
    expect((await listLobbies(game)).map(({ lobby_id }) => lobby_id)).toContain(first?.lobby_id ?? '');
  });

  test('and that all players have left stays as an open one would, beside a new one for finds', async () => {
    const game = await makeControlledGame(opened, { game_modes: { default: warmHere(1) } });
    const [kept] = await waitForIdle(game, 1);
    const { lobby, player } = await find(game);
    expect(lobby.lobby_id).toBe(kept?.lobby_id ?? '');
    const game_server = await connectGameServer(opened, game, lobby.lobby_id);
    await game_server.setClosed(true);
    await game_server.disconnected(player.token);
    await waitForIdle(game, 2);
    await waitForTwoChecks();
    const all = await listLobbies(game);
    expect(all.filter(({ is_closed }) => is_closed).map(({ lobby_id }) => lobby_id)).toEqual([lobby.lobby_id]);
    expect(all.filter(({ is_closed }) => !is_closed)).toHaveLength(1);
    // Reopened, one of the two is beyond the maximum: the one that was empty first.
    await game_server.setClosed(false);
    await waitForIdle(game, 1);
  });

  test('ends if the namespace has its maximum of lobbies, so that finds get another one', async () => {
    const game = await makeControlledGame(opened, { game_modes: { default: warmHere(0, 1) } });
    await setLimits(opened.api, { ...game, token: game.cloud_token }, { lobby_count_max: 1 });
    const { lobby, player } = await find(game);
    const game_server = await connectGameServer(opened, game, lobby.lobby_id);
    await game_server.setClosed(true);
    await game_server.disconnected(player.token);
    await waitFor(async () => (await idleOf(game)).length === 0, 'the closed lobby to end');
    expect((await find(game)).lobby.lobby_id).not.toBe(lobby.lobby_id);
  });

  test('ends if its game mode keeps no more closed ones', async () => {
    const game = await makeControlledGame(opened, { game_modes: { default: warmHere(1) } });
    const closed: string[] = [];
    for (const _lobby of [1, 2]) {
      await waitFor(async () => (await idleOf(game)).some(({ is_closed }) => !is_closed), 'a lobby for the find');
      const { lobby, player } = await find(game);
      const game_server = await connectGameServer(opened, game, lobby.lobby_id);
      await game_server.setClosed(true);
      await game_server.disconnected(player.token);
      closed.push(lobby.lobby_id);
    }
    await waitFor(async () => {
      const all = await listLobbies(game);
      return all.length === 2 && all.every(({ lobby_id }) => lobby_id !== closed[0]);
    }, 'the closed one that was empty first to end');
    const remaining = (await listLobbies(game)).filter(({ is_closed }) => is_closed);
    expect(remaining.map(({ lobby_id }) => lobby_id)).toEqual([closed[1] ?? '']);
  });

  test('warm lobbies: attempts to create more than the namespace may have wake no watcher', async () => {
    const game = await makeRoomGame(opened, { source: READY_SOURCE, mode: {} });
    const limits = { lobby_count_max: 1 };
    await setLimits(opened.api, { ...game, token: game.cloud_token }, limits);
    const docker = { image_id: game.build_id, ports: { game: { port: 80, protocol: 'http' } } };
    await deploy(opened.api, game, { game_modes: { default: warmHere(2) }, docker });
    await waitForIdle(game, 1);
    const indexOf = async () =>
      (await opened.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token })).watch.index;
    const before = await indexOf();
    await waitForTwoChecks();
    expect(await indexOf()).toBe(before);
  });
});

describe('the number of missing warm lobbies', () => {
  const pool: WarmPool = { namespace_id: 'n', version_id: 'v', game_mode: 'm', region: 'r', min: 3 };
  const now = new Date(100_000);
  const CASES: [string, { idle?: number; failures?: number; ago_ms?: number }, number][] = [
    ['all, if there are none', {}, 3],
    ['the rest', { idle: 1 }, 2],
    ['none, if there are as many', { idle: 3 }, 0],
    ['none, if there are more', { idle: 5 }, 0],
    ['none, two seconds after one ended by itself', { failures: 1, ago_ms: 1_999 }, 0],
    ['all, after that', { failures: 1, ago_ms: 2_000 }, 3],
    ['none, a minute after many ended', { failures: 30, ago_ms: 59_999 }, 0],
    ['all, after that minute', { failures: 30, ago_ms: 60_000 }, 3],
  ];
  for (const [what, { idle, failures, ago_ms = 0 }, count] of CASES) {
    test(what, () => {
      const { min: _wanted, ...place } = pool;
      const missing = missingLobbies(
        [pool],
        idle === undefined ? [] : [{ ...place, count: idle }],
        failures === undefined ? [] : [{ ...place, failures, last_ts: new Date(now.getTime() - ago_ms) }],
        now,
      );
      expect(missing).toEqual(count === 0 ? [] : [{ pool, count }]);
    });
  }

  test('does not depend on other pools', () => {
    const other = { ...pool, region: 'elsewhere' };
    const { min: _wanted, ...place } = pool;
    expect(missingLobbies([pool, other], [{ ...place, count: 3 }], [], now)).toEqual([{ pool: other, count: 3 }]);
  });
});
