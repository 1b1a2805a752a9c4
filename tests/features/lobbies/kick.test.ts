import { beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import { connectGameServer, find, join, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
const MODE = { default: { max_players: 64 } };
let game: TestGame;
beforeAll(async () => {
  game = await makeControlledGame(muster, { game_modes: MODE });
});

interface Seat {
  lobby_id: string;
  player_id: string;
}

const kick = ({ lobby_id, player_id }: Seat, { game_id, cloud_token: token } = game) =>
  muster.api.call('DELETE', `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}/players/${player_id}`, { token });

async function playersOf({ lobby_id }: { lobby_id: string }, of = game) {
  const path = `/cloud/games/${of.game_id}/namespaces/${of.namespace_id}/matchmaker/lobbies/${lobby_id}`;
  const { lobby } = await muster.api.ok('GET', path, { token: of.cloud_token });
  return lobby.players as { player_id: string; connect_ts?: string }[];
}

/** Gets a seat in a new lobby, and the id of its player. */
async function takeSeat(of = game) {
  const seat = await seatOf(find(muster, of));
  const players = await playersOf(seat, of);
  return { ...seat, player_id: players.at(-1)?.player_id ?? '' };
}

describe('kick', () => {
  test('frees the seat at once; the token is refused, and others get the seat', async () => {
    const small = await makeControlledGame(muster, { game_modes: { default: { max_players: 2 } } });
    const seat = await takeSeat(small);
    const server = await connectGameServer(muster, small, seat.lobby_id);
    expect(outcomeOf(await server.connected(seat.player_token))).toBe('200');
    const other = await seatOf(join(muster, small, seat.lobby_id));
    expect(outcomeOf(await join(muster, small, seat.lobby_id))).toBe('400 MATCHMAKER_LOBBY_FULL');
    expect((await kick(seat, small)).body).toEqual({ did_remove: true });
    expect(await playersOf(seat, small)).toHaveLength(1);
    expect(outcomeOf(await server.connected(seat.player_token))).toBe('400 MATCHMAKER_PLAYER_REMOVED');
    expect(outcomeOf(await server.disconnected(seat.player_token))).toBe('200');
    expect(outcomeOf(await join(muster, small, seat.lobby_id))).toBe('200');
    expect(outcomeOf(await server.connected(other.player_token))).toBe('200');
  });

  test('several calls for one player free one seat, and exactly one call returns did_remove', async () => {
    const seat = await takeSeat();
    // A lobby without players would end.
    await seatOf(join(muster, game, seat.lobby_id));
    const countSeats = async () => (await playersOf(seat)).length;
    const before = await countSeats();
    const answers = await Promise.all(Array.from({ length: 5 }, () => kick(seat)));
    expect(answers.filter(({ body }) => body.did_remove)).toHaveLength(1);
    expect(await countSeats()).toBe(before - 1);
    expect(await muster.inspector.playerCount(seat.lobby_id)).toBe(before - 1);
  });

  test('a call for a player of another lobby, game or tenant, or an unknown one, does nothing', async () => {
    const seat = await takeSeat();
    const other_game = await makeControlledGame(muster, { game_modes: MODE });
    const cases = [
      kick({ ...seat, lobby_id: crypto.randomUUID() }),
      kick({ ...seat, player_id: crypto.randomUUID() }),
      kick(seat, other_game),
      kick({ ...seat, lobby_id: (await seatOf(find(muster, other_game))).lobby_id }, other_game),
    ];
    for (const answer of await Promise.all(cases)) expect(answer.body).toEqual({ did_remove: false });
    expect(outcomeOf(await kick(seat, { ...game, cloud_token: other_game.cloud_token }))).toStartWith('40');
    expect((await playersOf(seat)).map(({ player_id }) => player_id)).toContain(seat.player_id);
  });

  test('is recorded, and the namespace of the lobby with it', async () => {
    const seat = await takeSeat();
    await kick(seat);
    const { entries } = await muster.api.ok('GET', `/cloud/games/${game.game_id}/audit-log`, {
      token: game.cloud_token,
    });
    expect(entries[0]).toMatchObject({
      operation: 'kickPlayer',
      namespace_id: game.namespace_id,
      details: { lobby_id: seat.lobby_id, player_id: seat.player_id, did_remove: true },
    });
  });
});
