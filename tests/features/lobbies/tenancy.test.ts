import { beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import {
  connectGameServer,
  find,
  type GameServer,
  join,
  makeControlledGame,
  seatOf,
} from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();

/** A game with a lobby, and the tokens of everyone in it. */
interface Tenant extends TestGame {
  game_server: GameServer;
  player_token: string;
}

async function makeTenant(): Promise<Tenant> {
  const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 2 } } });
  const { lobby_id, player_token } = await seatOf(find(muster, game));
  return { ...game, player_token, game_server: await connectGameServer(muster, game, lobby_id) };
}

let own: Tenant;
let other: Tenant;
/** The other namespace of the same game, on the same version. */
let staging: TestGame;
beforeAll(async () => {
  [own, other] = [await makeTenant(), await makeTenant()];
  const { game_id, staging_id, cloud_token: token } = own;
  const namespace = `/cloud/games/${game_id}/namespaces/${staging_id}`;
  const { game } = await muster.api.ok('GET', `/cloud/games/${game_id}`, { token });
  const prod = game.namespaces.find((one: { namespace_id: string }) => one.namespace_id === own.namespace_id);
  await muster.api.ok('PUT', `${namespace}/version`, { token, body: { version_id: prod.version_id } });
  const { token: public_token } = await muster.api.ok('POST', `${namespace}/tokens/public`, { token });
  staging = { ...own, namespace_id: staging_id, public_token };
});

describe('lobbies of other namespaces', () => {
  test("a public token joins no lobby of another game, nor of its game's other namespace", async () => {
    for (const game of [other, staging]) {
      expect(outcomeOf(await join(muster, game, own.game_server.lobby_id))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    }
  });

  test('the answers for foreign and missing lobbies are equal', async () => {
    const strip = ({ status, body: { ray_id: _, ...rest } }: Awaited<ReturnType<typeof join>>) => ({ status, rest });
    const foreign = await join(muster, other, own.game_server.lobby_id);
    expect(strip(foreign)).toEqual(strip(await join(muster, other, crypto.randomUUID())));
    const state = await other.game_server.getState(own.game_server.lobby_id);
    expect(strip(state)).toEqual(strip(await other.game_server.getState(crypto.randomUUID())));
  });

  test('find gives no seat in another namespace, also with the same version', async () => {
    const prevent = { prevent_auto_create_lobby: true };
    expect(outcomeOf(await find(muster, staging, prevent))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    const seat = await seatOf(find(muster, staging));
    expect(await muster.inspector.lobbiesOf(staging.namespace_id)).toMatchObject([{ lobby_id: seat.lobby_id }]);
    expect((await seatOf(find(muster, own, prevent))).lobby_id).toBe(own.game_server.lobby_id);
  });

  test('a lobby token is for its own lobby and its players only', async () => {
    const refused = '400 MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY';
    expect(outcomeOf(await other.game_server.connected(own.player_token))).toBe(refused);
    expect(outcomeOf(await other.game_server.disconnected(own.player_token))).toBe(refused);
    await other.game_server.setClosed(true);
    await other.game_server.setState('"theirs"');
    expect((await own.game_server.getState(own.game_server.lobby_id)).body).toBeNull();
    const lobbies = await muster.inspector.lobbiesOf(own.namespace_id);
    expect(lobbies).toMatchObject([{ lobby_id: own.game_server.lobby_id }]);
    expect(outcomeOf(await own.game_server.connected(own.player_token))).toBe('200');
  });

  test.each(['lobbies/find', 'lobbies/join', 'lobbies/create'])('%s accepts public tokens only', async (path) => {
    const tokens = [
      own.game_server.token,
      own.player_token,
      own.cloud_token,
      own.service_token,
      muster.administrator_token,
    ];
    for (const token of tokens) {
      expect(outcomeOf(await muster.api.post(`/matchmaker/${path}`, token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
    expect(outcomeOf(await muster.api.post(`/matchmaker/${path}`, undefined))).toBe('401 API_UNAUTHORIZED');
    expect(outcomeOf(await muster.api.post(`/matchmaker/${path}`, 'pub.x.y.z'))).toBe('401 TOKEN_INVALID');
  });
});
