import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import {
  connectGameServer,
  createGameServerClient,
  find,
  type GameServer,
  join,
  makeControlledGame,
  seatOf,
} from '../support/game-server.ts';
import { serversOf, uploadShell } from '../support/servers.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { sendPart } from '../support/uploads.ts';

const muster = shareService();
const ONLY_OPEN = { prevent_auto_create_lobby: true };

describe('lobbies.setClosed with is_closed = true turns an open lobby into a closed one', () => {
  let game: TestGame;
  let game_server: GameServer;
  let lobby_id: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster);
    lobby_id = (await seatOf(find(muster, game))).lobby_id;
    game_server = await connectGameServer(muster, game, lobby_id);
    // It is open before it is closed.
    expect((await seatOf(find(muster, game, ONLY_OPEN))).lobby_id).toBe(lobby_id);
    expect(await game_server.setClosed(true)).toMatchObject({ status: 200, body: {} });
  });

  test('the matchmaker stops routing players to the lobby', async () => {
    expect(outcomeOf(await find(muster, game, ONLY_OPEN))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    const elsewhere = await seatOf(find(muster, game));
    expect(elsewhere.lobby_id).not.toBe(lobby_id);
  });

  test('players can still join through the join endpoint', async () => {
    const { player_token, ...seat } = await seatOf(join(muster, game, lobby_id));
    expect(seat.lobby_id).toBe(lobby_id);
    expect(outcomeOf(await game_server.connected(player_token))).toBe('200');
  });

  test("the developer's lobby can still reject new connections", async () => {
    // The server turns the player away and reports the disconnect, which frees the seat.
    const { player_token } = await seatOf(join(muster, game, lobby_id));
    expect(outcomeOf(await game_server.disconnected(player_token))).toBe('200');
    expect(outcomeOf(await game_server.connected(player_token))).toBe('400 MATCHMAKER_PLAYER_REMOVED');
  });

  test('the lobby is not shut down', async () => {
    const server = await serversOf(muster, game).get(game_server.server_id);
    expect(server).not.toHaveProperty('destroyed_at');
    expect(await muster.inspector.stopReason(lobby_id)).toBeUndefined();
    const { public_hostname, public_port } = server.network.ports.game;
    expect((await fetch(`http://${public_hostname}:${public_port}`)).status).toBe(200);
  });

  test('is_closed = false opens it again (not shown; the reference API has it)', async () => {
    expect(outcomeOf(await game_server.setClosed(false))).toBe('200');
    // A lobby that was created in between is open too; find prefers the fuller one.
    expect((await seatOf(find(muster, game, ONLY_OPEN))).lobby_id).toBe(lobby_id);
    expect(outcomeOf(await game_server.setClosed(true))).toBe('200');
  });

  test('a development namespace token gets the same answer, and closes nothing', async () => {
    const open = await makeControlledGame(muster);
    const seat = await seatOf(find(muster, open));
    const path = `/cloud/games/${open.game_id}/namespaces/${open.namespace_id}/tokens/development`;
    const body = { hostname: 'localhost' };
    const { token } = await muster.api.ok('POST', path, { token: open.cloud_token, body });
    expect(await createGameServerClient(muster, token).setClosed(true)).toMatchObject({ status: 200, body: {} });
    expect((await seatOf(find(muster, open, ONLY_OPEN))).lobby_id).toBe(seat.lobby_id);
  });
});

describe('a server', () => {
  test('has no started_at before it has started, and no destroyed_at before it is destroyed', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const servers = serversOf(muster, game);
    const body = await servers.bodyOf(await uploadShell(muster.api, game, 'sleep 60'));
    const { server: created } = (await servers.create(body)).body;
    expect(created).not.toHaveProperty('started_at');
    expect(created).not.toHaveProperty('destroyed_at');
    const server_id = created.id;
    const started = await servers.waitForStart(server_id);
    expect(started).not.toHaveProperty('destroyed_at');
    expect(started.started_at).toBeGreaterThanOrEqual(started.created_at);
    expect((await servers.destroy(server_id)).body).toEqual({});
    const destroyed = await servers.waitForEnd(server_id);
    expect(destroyed.destroyed_at).toBeGreaterThanOrEqual(started.started_at);
    expect({ ...destroyed, destroyed_at: undefined, network: undefined }).toEqual({
      ...started,
      destroyed_at: undefined,
      network: undefined,
    });
  });

  test('that ends by itself is destroyed too', async () => {
    const servers = serversOf(muster, await makeGame(muster.api, muster.administrator_token));
    const ended = await servers.waitForEnd(await servers.run('exit 3'));
    expect(ended.destroyed_at).toBeGreaterThanOrEqual(ended.created_at);
  });

  test('that is destroyed stays destroyed, however often it is destroyed', async () => {
    const servers = serversOf(muster, await makeGame(muster.api, muster.administrator_token));
    const server_id = await servers.run('sleep 60');
    await servers.destroy(server_id);
    const { destroyed_at } = await servers.waitForEnd(server_id);
    expect(outcomeOf(await servers.destroy(server_id))).toBe('200');
    expect((await servers.get(server_id)).destroyed_at).toBe(destroyed_at);
  });
});

describe('an upload is not complete before it is completed', () => {
  test.each([
    { what: 'a build', path: 'builds', list: 'builds', kind: { kind: 'javascript' } },
    { what: 'a site', path: 'cdn/sites', list: 'sites', kind: {} },
  ])('$what', async ({ path, list, kind }) => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const token = game.cloud_token;
    const url = `/cloud/games/${game.game_id}/${path}`;
    const file = { path: 'server.js', content_length: 2 };
    const body = { display_name: 'Upload', ...kind, files: [file], image_file: file };
    const prepared = await muster.api.ok('POST', url, { token, body });
    const [request] = prepared.presigned_requests ?? [prepared.image_presigned_request];
    const isComplete = async () => (await muster.api.ok('GET', url, { token }))[list][0].complete;
    expect(await isComplete()).toBe(false);
    const complete = () => muster.api.post(`/cloud/uploads/${prepared.upload_id}/complete`, token);
    expect(outcomeOf(await complete())).toBe('400 UPLOAD_INCOMPLETE');
    expect(await sendPart(request, ';;')).toBe('200 accepted');
    expect(await isComplete()).toBe(false);
    expect((await complete()).body).toEqual({});
    expect(await isComplete()).toBe(true);
  });
});
