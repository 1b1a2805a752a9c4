import { describe, expect, test } from 'bun:test';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

type Game = Awaited<ReturnType<typeof makeControlledGame>>;

async function takeSeat(game: Game) {
  const seat = await seatOf(find(muster, game));
  const game_server = await connectGameServer(muster, game, seat.lobby_id);
  expect(outcomeOf(await game_server.connected(seat.player_token))).toBe('200');
  const lose = (reconnect_within_ms: number) =>
    muster.api.post('/matchmaker/players/disconnected', game_server.token, {
      player_token: seat.player_token,
      reconnect_within_ms,
    });
  return { ...seat, game_server, lose, connect: () => game_server.connected(seat.player_token) };
}

describe('a player whose connection was lost', () => {
  test('keeps the seat for as long as the game server says, and may connect once more with the same token', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 1 } } });
    const player = await takeSeat(game);
    expect(outcomeOf(await player.lose(60_000))).toBe('200');
    expect(await muster.inspector.playerCount(player.lobby_id)).toBe(1);
    expect((await seatOf(find(muster, game))).lobby_id).not.toBe(player.lobby_id);
    expect(outcomeOf(await player.connect())).toBe('200');
    expect(outcomeOf(await player.connect())).toBe('400 MATCHMAKER_PLAYER_ALREADY_CONNECTED');
  });

  test('is not in the player count that watchers of the lobby get until the player is back', async () => {
    const game = await makeControlledGame(muster, {});
    const player = await takeSeat(game);
    const path = `/matchmaker/lobbies/${player.lobby_id}`;
    const readLobby = (index = '') =>
      muster.api.ok('GET', `${path}?watch_index=${index}`, { token: game.public_token });
    const before = await readLobby();
    expect(before.lobby.total_player_count).toBe(1);
    const left = readLobby(before.watch.index);
    await player.lose(60_000);
    expect((await left).lobby.total_player_count).toBe(0);
    const back = readLobby((await left).watch.index);
    await player.connect();
    expect((await back).lobby.total_player_count).toBe(1);
  });

  test('loses the seat when that time is over', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { idle_lobbies: { min: 0, max: 1 } } } });
    const player = await takeSeat(game);
    await player.lose(5_000);
    muster.clock.advance(6_000);
    await waitFor(async () => (await muster.inspector.playerCount(player.lobby_id)) === 0, 'the seat to be free');
    expect(outcomeOf(await player.connect())).toBe('400 MATCHMAKER_PLAYER_REGISTRATION_EXPIRED');
  });

  test('loses the seat at once with a time of 0; players who have not connected keep theirs; at most 10 minutes', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 2 } } });
    const player = await takeSeat(game);
    const other = await seatOf(find(muster, game));
    const { game_server } = player;
    expect(outcomeOf(await player.lose(0))).toBe('200');
    expect(await muster.inspector.playerCount(player.lobby_id)).toBe(1);
    const keep = { player_token: other.player_token, reconnect_within_ms: 60_000 };
    expect(outcomeOf(await muster.api.post('/matchmaker/players/disconnected', game_server.token, keep))).toBe('200');
    expect(outcomeOf(await game_server.connected(other.player_token))).toBe('200');
    const long = { ...keep, reconnect_within_ms: 600_001 };
    const refused = await muster.api.post('/matchmaker/players/disconnected', game_server.token, long);
    expect(outcomeOf(refused)).toBe('400 API_BAD_BODY');
  });
});

describe("a lobby's code", () => {
  const join = (game: Game, body: object) => muster.api.post('/matchmaker/lobbies/join', game.public_token, body);

  test('joins the lobby in any spelling, also a private one', async () => {
    const actions = { create: { enabled: true, enable_private: true } };
    const game = await makeControlledGame(muster, { game_modes: { default: { actions } } });
    const { body } = await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
    const { lobby_id, code } = body.lobby;
    expect(code).toMatch(/^[A-Z2-9]{8}$/);
    for (const written of [code, code.toLowerCase(), `${code.slice(0, 4)}-${code.slice(4)}`, ` ${code} `]) {
      expect((await join(game, { code: written })).body.lobby.lobby_id).toBe(lobby_id);
    }
  });

  test('is valid in its own namespace only, while the lobby runs', async () => {
    const game = await makeControlledGame(muster, {});
    const other = await makeControlledGame(muster, {});
    const { body } = await find(muster, game);
    const { lobby_id, code } = body.lobby;
    expect(outcomeOf(await join(other, { code }))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    expect(outcomeOf(await join(game, { code: 'AAAAAAAA' }))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`;
    await muster.api.ok('DELETE', path, { token: game.cloud_token });
    expect(outcomeOf(await join(game, { code }))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
  });

  test('may be sent instead of the id; with both, they must belong together', async () => {
    const game = await makeControlledGame(muster, {});
    const { body } = await find(muster, game);
    const { lobby_id, code } = body.lobby;
    expect(outcomeOf(await join(game, {}))).toBe('400 API_BAD_BODY');
    expect(outcomeOf(await join(game, { lobby_id, code }))).toBe('200');
    expect(outcomeOf(await join(game, { lobby_id, code: 'AAAAAAAA' }))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
  });
});
