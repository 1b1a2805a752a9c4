import { beforeAll, describe, expect, test } from 'bun:test';
import { deploy, makeGame, type TestGame } from '../support/game.ts';
import {
  connectGameServer,
  createGameServerClient,
  find,
  makeControlledGame,
  seatOf,
  waitForFirstLobby,
} from '../support/game-server.ts';
import { serversOf } from '../support/servers.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { expectShape } from './exact-shapes.ts';
import { JOIN_RESPONSE } from './specification.ts';

const muster = shareService();

describe('matchmaker requests carry the path prefix /v1', () => {
  let game: TestGame;
  let lobby_id: string;
  beforeAll(async () => {
    const game_modes = { default: { actions: { create: { enabled: true } } } };
    game = await makeControlledGame(muster, { game_modes });
    lobby_id = (await seatOf(find(muster, game))).lobby_id;
  });

  test.each(['find', 'join', 'create'])('lobbies.%s', async (name) => {
    const body = { lobby_id, game_modes: ['default'], game_mode: 'default' };
    const { body: answer } = await muster.api.post(`/v1/lobbies/${name}`, game.public_token, body);
    expectShape(answer, JOIN_RESPONSE);
    if (name !== 'create') expect(answer.lobby.lobby_id).toBe(lobby_id);
  });

  test('and so do the requests of a lobby', async () => {
    const { token } = await connectGameServer(muster, game, lobby_id);
    const body = { game_modes: ['default'] };
    const { player } = (await muster.api.post('/v1/lobbies/find', game.public_token, body)).body;
    const { api } = muster;
    const answers = [
      await api.post('/v1/lobbies/ready', token),
      await api.put('/v1/lobbies/closed', token, { is_closed: true }),
      await api.put('/v1/lobbies/state', token, { map: 'ice' }),
      await api.post('/v1/players/connected', token, { player_token: player.token }),
      await api.post('/v1/players/disconnected', token, { player_token: player.token }),
    ];
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, {}]));
    expect((await api.get(`/v1/lobbies/${lobby_id}/state`, token)).body).toEqual({ map: 'ice' });
    expect((await createGameServerClient(muster, token).getState(lobby_id)).body).toEqual({ map: 'ice' });
  });
});

describe('games have versions', () => {
  test('a namespace is bound to one version_id, of a version with version_id, display_name and create_ts', async () => {
    const game = await makeControlledGame(muster);
    const readGame = async () => (await muster.api.ok('GET', `/cloud/games/${game.game_id}`, asDeveloper(game))).game;
    const version_id = await deploy(muster.api, game, game.matchmaker);
    const { namespaces, versions } = await readGame();
    const idOf = (name: string) => namespaces.find(({ name_id }: { name_id: string }) => name_id === name).version_id;
    expect(idOf('prod')).toBe(version_id);
    expect(idOf('staging')).not.toBe(version_id);
    expect(versions.map((version: { version_id: string }) => version.version_id)).toContain(version_id);
    expect(versions).toHaveLength(3);
  });

  test('the matchmaker configuration lives in the version: another version, other game modes', async () => {
    const game = await makeControlledGame(muster, { game_modes: { duel: {} } });
    expect(outcomeOf(await find(muster, game))).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
    expect(outcomeOf(await find(muster, game, { game_modes: ['duel'] }))).toBe('200');
    await deploy(muster.api, game, { ...game.matchmaker, game_modes: { default: {} } });
    expect(outcomeOf(await find(muster, game))).toBe('200');
    expect(outcomeOf(await find(muster, game, { game_modes: ['duel'] }))).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
  });
});

describe('watchable endpoints return a watch.index for long polling through watch_index', () => {
  let game: TestGame;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
  });

  const makeVersion = () =>
    muster.api.ok('POST', `/cloud/games/${game.game_id}/versions`, {
      ...asDeveloper(game),
      body: { display_name: crypto.randomUUID(), config: {} },
    });
  /**
   * Starts a poll at the current index, checks that it still waits after other requests, changes something, and returns
   * both answers.
   */
  async function watch(path: string, token: string, change: () => Promise<unknown>) {
    const before = await muster.api.ok('GET', path, { token });
    const mark = path.includes('?') ? '&' : '?';
    const waiting = muster.api.ok('GET', `${path}${mark}watch_index=${before.watch.index}`, { token });
    const others = Promise.all([muster.api.get(path, token), muster.api.get('/health/ready')]).then(() => 'others');
    expect(await Promise.race([waiting, others])).toBe('others');
    await change();
    const after = await waiting;
    expect(after.watch.index).not.toBe(before.watch.index);
    return { before, after };
  }

  test('games.getGameById', async () => {
    const { before, after } = await watch(`/cloud/games/${game.game_id}`, game.cloud_token, makeVersion);
    expect(after.game.versions.length).toBe(before.game.versions.length + 1);
  });

  test('games.getGames', async () => {
    let added = '';
    const makeAnother = async () => {
      const body = { display_name: 'Another', developer_group_id: game.group_id };
      added = (await muster.api.ok('POST', '/cloud/games', { token: muster.administrator_token, body })).game_id;
    };
    const { before, after } = await watch('/cloud/games', muster.administrator_token, makeAnother);
    const idsIn = ({ games }: { games: { game_id: string }[] }) => games.map(({ game_id }) => game_id);
    expect(idsIn(before)).not.toContain(added);
    // The players of another test's game may have been counted meanwhile, which is a change of the list too.
    let latest = after;
    while (!idsIn(latest).includes(added)) {
      const path = `/cloud/games?watch_index=${latest.watch.index}`;
      latest = await muster.api.ok('GET', path, { token: muster.administrator_token });
    }
  });

  test('logs get, with exactly the lines that came since', async () => {
    const room = await makeControlledGame(muster, { source: PRINTING_SOURCE });
    await seatOf(find(muster, room));
    const server_id = (await connectGameServer(muster, room, await waitForFirstLobby(muster, room))).server_id;
    const servers = serversOf(muster, room);
    expect(await servers.waitForLines(server_id, 1)).toEqual(['up']);
    const { public_hostname, public_port } = (await servers.get(server_id)).network.ports.game;
    const print = (line: string) => fetch(`http://${public_hostname}:${public_port}/${line}`);
    const path = `${servers.path}/${server_id}/logs?stream=std_out`;
    const { before, after } = await watch(path, room.cloud_token, () => print('hello'));
    expect([before.lines, after.lines]).toEqual([[btoa('up')], [btoa('hello')]]);
    expect(after.timestamps).toHaveLength(1);
  });

  test('an outdated index is answered at once, and so is an invalid one', async () => {
    const path = `/cloud/games/${game.game_id}`;
    const { watch: old } = await muster.api.ok('GET', path, asDeveloper(game));
    await makeVersion();
    for (const index of [old.index, 'of nothing that was seen']) {
      const answer = await muster.api.ok('GET', `${path}?watch_index=${encodeURIComponent(index)}`, asDeveloper(game));
      expect(answer.watch.index).not.toBe(index);
    }
  });
});

const asDeveloper = ({ cloud_token: token }: TestGame) => ({ token });

/** Prints "up" at its start, and then the name of each requested path. */
const PRINTING_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
Bun.serve({ port: Number(PORT_game), fetch: ({ url }) => {
  const { pathname } = new URL(url);
  if (pathname !== '/') console.log(pathname.slice(1));
  return Response.json(process.env);
} });
console.log('up');
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;
