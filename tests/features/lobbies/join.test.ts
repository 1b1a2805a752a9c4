import { beforeAll, describe, expect, test } from 'bun:test';
import { deploy, type TestGame } from '../../support/game.ts';
import { connectGameServer, find, join, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

const seatIn = (game: TestGame, game_mode: string) => seatOf(find(muster, game, { game_modes: [game_mode] }));

describe('join is refused', () => {
  const game_modes = {
    default: { max_players: 1, max_players_direct: 3 },
    not_joined: { actions: { join: { enabled: false } } },
    with_identity: { actions: { join: { enabled: true, identity_requirement: 'guest' } } },
  };
  let game: TestGame;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { game_modes });
  });

  test.each([
    { promise: 'without a lobby', body: {}, outcome: '400 API_BAD_BODY', message: '"lobby_id"' },
    {
      promise: 'with an invalid id',
      body: { lobby_id: 'x' },
      outcome: '400 API_BAD_BODY',
      message: '"lobby_id"',
    },
    {
      promise: 'for a missing lobby',
      body: { lobby_id: crypto.randomUUID() },
      outcome: '404 MATCHMAKER_LOBBY_NOT_FOUND',
      message: 'This namespace has no such lobby. Find another one.',
    },
  ])('$promise', async ({ body, outcome, message }) => {
    const answer = await muster.api.post('/matchmaker/lobbies/join', game.public_token, body);
    expect(outcomeOf(answer)).toBe(outcome);
    expect(answer.body.message).toContain(message);
  });

  test.each([
    ['not_joined', 'MATCHMAKER_JOIN_DISABLED'],
    ['with_identity', 'MATCHMAKER_IDENTITY_REQUIRED'],
  ])('if the game mode does not allow it: %s, %s', async (game_mode, code) => {
    const { lobby_id } = await seatIn(game, game_mode);
    expect(outcomeOf(await join(muster, game, lobby_id))).toBe(`400 ${code}`);
    expect(await muster.inspector.playerCount(lobby_id)).toBe(1);
  });

  test('beyond the direct maximum, also concurrently', async () => {
    const { lobby_id } = await seatIn(game, 'default');
    const answers = await Promise.all(Array.from({ length: 20 }, () => join(muster, game, lobby_id)));
    const outcomes = Map.groupBy(answers, ({ status, body }) => (status === 200 ? 'seated' : body.code));
    expect(outcomes.get('seated')).toHaveLength(2);
    expect(outcomes.get('MATCHMAKER_LOBBY_FULL')).toHaveLength(18);
    expect(new Set(outcomes.get('seated')?.map(({ body }) => body.lobby.lobby_id))).toEqual(new Set([lobby_id]));
  });

  test('for a stopped lobby', async () => {
    const { lobby_id, player_token } = await seatIn(game, 'default');
    await (await connectGameServer(muster, game, lobby_id)).disconnected(player_token);
    await waitFor(() => muster.inspector.stopReason(lobby_id), 'the empty lobby to stop');
    expect(outcomeOf(await join(muster, game, lobby_id))).toBe('400 MATCHMAKER_LOBBY_STOPPED');
  });
});

describe('join gives a seat', () => {
  test('in the named lobby, in any spelling of its id, in the shape of find', async () => {
    const game = await makeControlledGame(muster);
    const found = (await find(muster, game)).body;
    const joined = await muster.api.ok('POST', '/v1/lobbies/join', {
      token: game.public_token,
      body: { lobby_id: found.lobby.lobby_id.toUpperCase(), captcha: {}, verification_data: [1, null] },
    });
    expect(joined).toEqual({
      ...found,
      lobby: { ...found.lobby, player: { token: joined.player.token } },
      player: { token: joined.player.token },
    });
    expect(joined.player.token).not.toBe(found.player.token);
  });

  test('in a closed lobby of an older version, above the normal maximum, where find gives none', async () => {
    const game = await makeControlledGame(muster, {
      game_modes: { default: { max_players: 1, max_players_direct: 4 } },
    });
    const { lobby_id } = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, lobby_id);
    expect((await game_server.setClosed(true)).status).toBe(200);
    await deploy(muster.api, game, game.matchmaker);
    expect((await seatOf(join(muster, game, lobby_id))).lobby_id).toBe(lobby_id);
    const elsewhere = await seatOf(find(muster, game));
    expect(elsewhere.lobby_id).not.toBe(lobby_id);
  });

  test('in a lobby that is not ready yet, once it is', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const finding = find(muster, game);
    const [lobby] = await waitFor(async () => {
      const lobbies = await muster.inspector.lobbiesOf(game.namespace_id);
      return lobbies.length > 0 ? lobbies : undefined;
    }, 'the lobby');
    const lobby_id = lobby?.lobby_id ?? '';
    const joining = join(muster, game, lobby_id);
    await waitFor(
      async () => (await muster.inspector.lobbiesOf(game.namespace_id))[0]?.player_count === 2,
      'both seats',
    );
    expect((await (await connectGameServer(muster, game, lobby_id)).ready()).status).toBe(200);
    const [found, joined] = await Promise.all([finding, joining]);
    expect([found.body.ports, joined.body.lobby.lobby_id]).toEqual([joined.body.ports, lobby_id]);
  });
});
