import { describe, expect, test } from 'bun:test';
import { connectGameServer, find, makeControlledGame } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

type Game = Awaited<ReturnType<typeof makeControlledGame>>;

/** Finds seats for a party, and returns the lobby and all tokens. */
async function findFor(game: Game, players: number, body: object = {}) {
  const answer = await find(muster, game, { players, ...body });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body.code}`);
  const tokens = (answer.body.players ?? [answer.body.player]).map(({ token }: { token: string }) => token);
  return { lobby_id: answer.body.lobby.lobby_id as string, tokens: tokens as string[], body: answer.body };
}

describe('a party', () => {
  test('gets seats in one lobby, with a token for each player, valid once', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 4 } } });
    const { lobby_id, tokens, body } = await findFor(game, 3);
    expect(new Set(tokens).size).toBe(3);
    expect(body.player.token).toBe(tokens[0]);
    expect(await muster.inspector.playerCount(lobby_id)).toBe(3);
    const game_server = await connectGameServer(muster, game, lobby_id);
    for (const token of tokens) expect(outcomeOf(await game_server.connected(token))).toBe('200');
    expect(outcomeOf(await game_server.connected(tokens[2] ?? ''))).toBe('400 MATCHMAKER_PLAYER_ALREADY_CONNECTED');
  });

  test('has no list of tokens if it is one player', async () => {
    const game = await makeControlledGame(muster, {});
    expect((await findFor(game, 1)).body).not.toHaveProperty('players');
  });

  test('gets a lobby with room for all, or a new one, and is never split', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 4 } } });
    const first = await findFor(game, 3);
    const second = await findFor(game, 2);
    expect(second.lobby_id).not.toBe(first.lobby_id);
    const alone = await findFor(game, 1);
    expect(alone.lobby_id).toBe(first.lobby_id);
    const third = await findFor(game, 2);
    expect(third.lobby_id).toBe(second.lobby_id);
    expect([
      await muster.inspector.playerCount(first.lobby_id),
      await muster.inspector.playerCount(second.lobby_id),
    ]).toEqual([4, 4]);
  });

  test('may take the seats above the normal maximum that a game mode has for parties', async () => {
    const mode = { max_players: 2, max_players_direct: 2, max_players_party: 5 };
    const game = await makeControlledGame(muster, { game_modes: { default: mode } });
    const { lobby_id } = await findFor(game, 1);
    expect((await findFor(game, 4)).lobby_id).toBe(lobby_id);
    expect((await findFor(game, 1)).lobby_id).not.toBe(lobby_id);
    expect(await muster.inspector.playerCount(lobby_id)).toBe(5);
  });

  test('creates a lobby of the first game mode with room for all', async () => {
    const game_modes = { duel: { max_players: 2 }, arena: { max_players: 4 } };
    const game = await makeControlledGame(muster, { game_modes });
    const { lobby_id } = await findFor(game, 3, { game_modes: ['duel', 'arena'] });
    const [lobby] = await muster.inspector.lobbiesOf(game.namespace_id);
    expect(lobby).toMatchObject({ lobby_id, player_count: 3 });
    expect((await findFor(game, 1, { game_modes: ['arena'] })).lobby_id).toBe(lobby_id);
  });

  test('is refused if no lobby could ever have room for it, and nothing is created', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 4 } } });
    expect(outcomeOf(await find(muster, game, { players: 5 }))).toBe('400 MATCHMAKER_PARTY_TOO_LARGE');
    expect(outcomeOf(await find(muster, game, { players: 0 }))).toBe('400 API_BAD_BODY');
    expect(await muster.inspector.lobbiesOf(game.namespace_id)).toEqual([]);
  });

  test('joins a lobby together or not at all', async () => {
    const game = await makeControlledGame(muster, {
      game_modes: { default: { max_players: 2, max_players_direct: 4 } },
    });
    const { lobby_id } = await findFor(game, 1);
    const join = (players: number) =>
      muster.api.post('/matchmaker/lobbies/join', game.public_token, { lobby_id, players });
    expect(outcomeOf(await join(4))).toBe('400 MATCHMAKER_LOBBY_FULL');
    expect(await muster.inspector.playerCount(lobby_id)).toBe(1);
    const joined = await join(3);
    expect([joined.status, joined.body.players.length]).toEqual([200, 3]);
    expect(outcomeOf(await join(1))).toBe('400 MATCHMAKER_LOBBY_FULL');
  });

  test('creates a custom lobby together', async () => {
    const mode = { max_players: 4, actions: { create: { enabled: true, enable_private: true } } };
    const game = await makeControlledGame(muster, { game_modes: { default: mode } });
    const answer = await muster.api.post('/matchmaker/lobbies/create', game.public_token, {
      game_mode: 'default',
      players: 3,
    });
    expect([answer.status, answer.body.players.length]).toEqual([200, 3]);
    expect(await muster.inspector.playerCount(answer.body.lobby.lobby_id)).toBe(3);
  });

  test('loses all its seats if the client disconnects', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const leaving = new AbortController();
    const finding = find(muster, game, { players: 3 }, leaving.signal).catch(() => 'gone');
    const lobby = await waitFor(async () => (await muster.inspector.lobbiesOf(game.namespace_id))[0], 'the lobby');
    expect(lobby.player_count).toBe(3);
    leaving.abort();
    expect(await finding).toBe('gone');
    const reasons = () => muster.inspector.removeReasons(game.namespace_id);
    await waitFor(async () => (await reasons()).length === 3, 'the seats to be given back');
    expect(await reasons()).toEqual(['request_ended', 'request_ended', 'request_ended']);
  });

  test('among many concurrent ones is not split, and no lobby exceeds its maximum', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 5 } } });
    const sizes = Array.from({ length: 60 }, (_, number) => 1 + (number % 4));
    const found = await Promise.all(sizes.map((players) => findFor(game, players)));
    const by_lobby = Map.groupBy(
      found.map(({ lobby_id, tokens }) => ({ lobby_id, seats: tokens.length })),
      ({ lobby_id }) => lobby_id,
    );
    for (const [lobby_id, parties] of by_lobby) {
      const seats = parties.reduce((sum, party) => sum + party.seats, 0);
      expect(seats).toBeLessThanOrEqual(5);
      expect(await muster.inspector.playerCount(lobby_id)).toBe(seats);
    }
  });
});
