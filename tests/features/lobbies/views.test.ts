import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { deploy, makeGame, type TestGame } from '../../support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

let opened: TestService;
let game: TestGame & { build_id: string };
beforeAll(async () => {
  opened = await openTestService();
  game = await makeRoomGame(opened, { source: READY_SOURCE, max_players: 2 });
});
afterAll(() => opened[Symbol.asyncDispose]());

const find = async () =>
  await opened.api.ok('POST', '/matchmaker/lobbies/find', {
    token: game.public_token,
    body: { game_modes: ['default'] },
  });
const asPlayer = async (path: string) => {
  const { watch: _index, ...view } = await opened.api.ok('GET', `/matchmaker${path}`, { token: game.public_token });
  return view;
};
const asDeveloper = (path: string) => opened.api.ok('GET', path, { token: game.cloud_token });

const REGION = {
  region_id: 'local',
  provider_display_name: 'Muster',
  region_display_name: 'Local',
  datacenter_coord: { latitude: 0, longitude: 0 },
  datacenter_distance_from_client: { kilometers: 0, miles: 0 },
};

describe('players and developers see', () => {
  test('every game mode and region, and no lobby, if there is none', async () => {
    expect(await asPlayer('/lobbies/list')).toEqual({
      game_modes: [{ game_mode_id: 'default' }],
      regions: [REGION],
      lobbies: [],
    });
    expect(await asPlayer('/regions')).toEqual({ regions: [REGION] });
    expect(await asPlayer('/players/statistics')).toEqual({
      player_count: 0,
      game_modes: { default: { player_count: 0, regions: { local: { player_count: 0 } } } },
    });
  });

  test('the seats and states of a lobby, from the first find until after its end', async () => {
    const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
    const unwatched = await asDeveloper(`/cloud/games/${game.game_id}`);
    const { lobby } = await find();
    await find();
    const [listed] = (await asPlayer('/lobbies/list?include_state=true')).lobbies;
    expect(listed).toEqual({
      region_id: 'local',
      game_mode_id: 'default',
      lobby_id: lobby.lobby_id,
      max_players_normal: 2,
      max_players_direct: 2,
      max_players_party: 2,
      // No player has connected yet; the seats are in the statistics.
      total_player_count: 0,
    });
    expect(await asPlayer('/players/statistics')).toEqual({
      player_count: 2,
      game_modes: { default: { player_count: 2, regions: { local: { player_count: 2 } } } },
    });
    // Watchers of the game see its players, in one body or in several.
    let { game: read, watch } = unwatched;
    expect(read.total_player_count).toBe(0);
    while (read.total_player_count < 2) {
      const path = `/cloud/games/${game.game_id}?watch_index=${watch.index}`;
      ({ game: read, watch } = await asDeveloper(path));
    }
    expect(read.total_player_count).toBe(2);
    expect((await asDeveloper('/cloud/games')).games).toMatchObject([{ total_player_count: 2 }]);
    const [live] = (await asDeveloper(`${namespace}/analytics/matchmaker/live`)).lobbies;
    expect(live).toEqual({
      lobby_id: lobby.lobby_id,
      lobby_group_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      lobby_group_name_id: 'default',
      region_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      create_ts: expect.stringMatching(/Z$/),
      is_ready: true,
      is_idle: false,
      is_closed: false,
      is_outdated: false,
      server_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      max_players_normal: 2,
      max_players_direct: 2,
      max_players_party: 2,
      total_player_count: 2,
      registered_player_count: 0,
    });

    // After a deployment, the old lobbies are outdated, and still counted unless the request excludes them.
    await deploy(opened.api, game, {
      game_modes: { default: {} },
      docker: { image_id: game.build_id, ports: { game: { port: 80, protocol: 'http' } } },
    });
    expect((await asPlayer('/lobbies/list')).lobbies).toEqual([]);
    expect((await asPlayer('/players/statistics')).player_count).toBe(2);
    expect((await asPlayer('/players/statistics?exclude_outdated=true')).player_count).toBe(0);
    expect((await asDeveloper(`${namespace}/analytics/matchmaker/live`)).lobbies[0].is_outdated).toBe(true);

    const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby.lobby_id}`;
    const removing = await Promise.all([1, 2, 3].map(() => opened.api.ok('DELETE', path, { token: game.cloud_token })));
    expect(removing.filter(({ did_remove }) => did_remove)).toHaveLength(1);
    const { server_id } = live;
    const hasEnded = () =>
      opened.events.some((event) => event.event === 'server_ended' && event.server_id === server_id);
    await waitFor(hasEnded, 'its server to end');
    const past = await asDeveloper(`${namespace}/logs/lobbies/${lobby.lobby_id}`);
    expect(past).toEqual({
      watch: { index: expect.any(String) },
      lobby: {
        lobby_id: lobby.lobby_id,
        namespace_id: game.namespace_id,
        lobby_group_name_id: 'default',
        region_id: live.region_id,
        create_ts: live.create_ts,
        start_ts: expect.stringMatching(/Z$/),
        ready_ts: expect.stringMatching(/Z$/),
        status: { running: {}, stopped: { stop_ts: expect.stringMatching(/Z$/), failed: false, exit_code: 143 } },
      },
      stdout_presigned_urls: [],
      stderr_presigned_urls: [],
      perf_lists: [],
    });
    const { lobbies } = await asDeveloper(`${namespace}/logs/lobbies`);
    expect(lobbies.map(({ lobby_id }: { lobby_id: string }) => lobby_id)).toEqual([lobby.lobby_id]);
    const before = encodeURIComponent(past.lobby.create_ts);
    expect((await asDeveloper(`${namespace}/logs/lobbies?before_create_ts=${before}`)).lobbies).toEqual([]);
  });

  test('players of an older version whose game mode has the name of an inherited property', async () => {
    const other = await makeRoomGame(opened, { source: READY_SOURCE });
    const docker = { image_id: other.build_id, ports: { game: { port: 80, protocol: 'http' } } };
    await deploy(opened.api, other, { game_modes: { constructor: {} }, docker });
    const { public_token: token } = other;
    const body = { game_modes: ['constructor'] };
    await opened.api.ok('POST', '/matchmaker/lobbies/find', { token, body });
    await deploy(opened.api, other, { game_modes: { default: {} }, docker });
    const { watch: _index, ...counted } = await opened.api.ok('GET', '/matchmaker/players/statistics', { token });
    const none = { player_count: 0, regions: { local: { player_count: 0 } } };
    const one = { player_count: 1, regions: { local: { player_count: 1 } } };
    expect(counted).toEqual({ player_count: 1, game_modes: { default: none, constructor: one } });
  });

  test('a lobby whose server crashed as failed', async () => {
    const source = `${READY_SOURCE}\nprocess.kill(process.pid, 'SIGSEGV');`;
    const crashing = await makeRoomGame(opened, { source });
    const body = { game_modes: ['default'] };
    await opened.api.call('POST', '/matchmaker/lobbies/find', { token: crashing.public_token, body });
    const path = `/cloud/games/${crashing.game_id}/namespaces/${crashing.namespace_id}/logs/lobbies`;
    const stopped = await waitFor(async () => {
      const { lobbies } = await opened.api.ok('GET', path, { token: crashing.cloud_token });
      return lobbies[0]?.status.stopped;
    }, 'the lobby to have stopped');
    expect(stopped).toMatchObject({ failed: true, exit_code: 139 });
  });

  test('no lobby of another game, and cannot end one', async () => {
    const other = await makeGame(opened.api, opened.administrator_token);
    const { lobby } = await find();
    const path = `/cloud/games/${other.game_id}/matchmaker/lobbies/${lobby.lobby_id}`;
    expect((await opened.api.call('DELETE', path, { token: other.cloud_token })).body).toEqual({ did_remove: false });
    const theirs = `/cloud/games/${other.game_id}/namespaces/${other.namespace_id}/logs/lobbies/${lobby.lobby_id}`;
    expect((await opened.api.get(theirs, other.cloud_token)).body.code).toBe('MATCHMAKER_LOBBY_NOT_FOUND');
  });

  test('a made-up lobby of each game mode with a development token, and no real one', async () => {
    const { token } = await opened.api.ok(
      'POST',
      `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/tokens/development`,
      { token: game.cloud_token, body: { hostname: 'localhost', ports: {} } },
    );
    const { lobbies, regions } = await opened.api.ok('GET', '/matchmaker/lobbies/list?include_state=true', { token });
    expect(lobbies).toMatchObject([
      { lobby_id: '00000000-0000-0000-0000-000000000000', game_mode_id: 'default', state: { foo: 'bar' } },
    ]);
    expect(regions).toMatchObject([{ region_id: 'dev-lcl', provider_display_name: 'Development' }]);
    expect(await opened.api.ok('GET', '/matchmaker/players/statistics', { token })).toMatchObject({
      player_count: 0,
      game_modes: {},
    });
  });
});
