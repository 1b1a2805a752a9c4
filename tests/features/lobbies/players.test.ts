import { beforeAll, describe, expect, test } from 'bun:test';
import { topics } from '../../../src/features/topics.ts';
import { readVersions } from '../../../src/platform/watch/versions.ts';
import { lockLobby } from '../../support/database/lobby-locks.ts';
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
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
let game: TestGame;
let game_server: GameServer;
beforeAll(async () => {
  game = await makeControlledGame(muster, { game_modes: { default: {}, other: {} } });
  game_server = await connectGameServer(muster, game, (await seatOf(find(muster, game))).lobby_id);
});

/** Both calls, which check the player in the same way. */
const CALLS = ['connected', 'disconnected'] as const;

describe.each(CALLS)('%s is refused', (call) => {
  test.each([
    { promise: 'without a token', body: {}, message: '"player_token"' },
    { promise: 'for a token that is not a string', body: { player_token: 7 }, message: '"player_token"' },
    { promise: 'for a token above the maximum length', body: { player_token: 'x'.repeat(8_193) }, message: '8192' },
  ])('$promise', async ({ body, message }) => {
    const answer = await muster.api.post(`/matchmaker/players/${call}`, game_server.token, body);
    expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
    expect(answer.body.message).toContain(message);
  });

  test("for a text that is no token, for tokens without the service's signature, and for tokens of other kinds", async () => {
    const { player_token } = await seatOf(find(muster, game));
    const [label, head, payload, signature] = player_token.split('.');
    const tokens: [string, string][] = [
      ['', 'it was not signed by this service'],
      ['garbage', 'it was not signed by this service'],
      [`${label}.${head}.${payload}.${signature?.split('').reverse().join('')}`, 'it was not signed by this service'],
      [`${label}.${head}.${payload}`, 'it was not signed by this service'],
      [game_server.token, 'it is of the kind lobby, but must be of the kind player'],
      [game.public_token, 'it is of the kind public, but must be of the kind player'],
      [await developmentPlayer(), 'it is of the kind development_player, but must be of the kind player'],
    ];
    const before = await muster.inspector.measure();
    for (const [token, reason] of tokens) {
      const answer = await game_server[call](token);
      expect(outcomeOf(answer)).toBe('400 TOKEN_ERROR');
      expect(answer.body.message).toContain(reason);
    }
    expect(await muster.inspector.measure()).toEqual(before);
  });

  test('for a player of another lobby, also of another game, who keeps the seat', async () => {
    const stranger_game = await makeControlledGame(muster);
    const neighbor = await seatOf(find(muster, game, { game_modes: ['other'] }));
    const stranger = await seatOf(find(muster, stranger_game));
    for (const { player_token } of [neighbor, stranger]) {
      expect(outcomeOf(await game_server[call](player_token))).toBe('400 MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY');
    }
    const own = await connectGameServer(muster, game, neighbor.lobby_id);
    expect(outcomeOf(await own.connected(neighbor.player_token))).toBe('200');
  });
});

describe('a player', () => {
  test('connects to the right lobby if two send the token at the same time', async () => {
    const neighbor = await seatOf(find(muster, game, { game_modes: ['other'] }));
    const stranger = await connectGameServer(muster, game, neighbor.lobby_id);
    for (let round = 0; round < 5; round += 1) {
      const [first, own] = [
        await seatOf(join(muster, game, game_server.lobby_id)),
        await seatOf(join(muster, game, game_server.lobby_id)),
      ];
      // The round of the first call is running while the others wait for the next.
      const answers = await Promise.all([
        game_server.connected(first.player_token),
        stranger.connected(own.player_token),
        game_server.connected(own.player_token),
      ]);
      expect(answers.map(outcomeOf)).toEqual(['200', '400 MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', '200']);
      for (const { player_token } of [first, own]) await game_server.disconnected(player_token);
    }
  });

  test('connects once, also if the token is sent twice concurrently', async () => {
    const { player_token } = await seatOf(join(muster, game, game_server.lobby_id));
    const together = await Promise.all(Array.from({ length: 5 }, () => game_server.connected(player_token)));
    expect(together.map(outcomeOf).toSorted()).toEqual([
      '200',
      ...Array.from({ length: 4 }, () => '400 MATCHMAKER_PLAYER_ALREADY_CONNECTED'),
    ]);
    expect(outcomeOf(await game_server.connected(player_token))).toBe('400 MATCHMAKER_PLAYER_ALREADY_CONNECTED');
  });

  test('frees one seat on disconnect, however often that is reported', async () => {
    const before = await muster.inspector.playerCount(game_server.lobby_id);
    const { player_token } = await seatOf(join(muster, game, game_server.lobby_id));
    await game_server.connected(player_token);
    const together = await Promise.all(Array.from({ length: 5 }, () => game_server.disconnected(player_token)));
    expect(together.map(outcomeOf)).toEqual(Array.from({ length: 5 }, () => '200'));
    expect(outcomeOf(await game_server.disconnected(player_token))).toBe('200');
    expect(await muster.inspector.playerCount(game_server.lobby_id)).toBe(before);
  });

  test('who has left wakes no watcher by leaving again', async () => {
    const { player_token } = await seatOf(join(muster, game, game_server.lobby_id));
    await game_server.disconnected(player_token);
    const names = [topics.lobbiesOf(game.namespace_id), topics.playersOf(game.namespace_id)];
    const versions = () => readVersions(muster.database.queries, names);
    const before = await versions();
    expect(outcomeOf(await game_server.disconnected(player_token))).toBe('200');
    expect(await versions()).toEqual(before);
  });

  test('who may not connect wakes no watcher', async () => {
    const [connected, gone] = [
      await seatOf(join(muster, game, game_server.lobby_id)),
      await seatOf(join(muster, game, game_server.lobby_id)),
    ];
    await game_server.connected(connected.player_token);
    await game_server.disconnected(gone.player_token);
    const names = [topics.playersOf(game.namespace_id), topics.connectedIn(game_server.lobby_id)];
    const versions = () => readVersions(muster.database.queries, names);
    const before = await versions();
    expect(outcomeOf(await game_server.connected(connected.player_token))).toBe(
      '400 MATCHMAKER_PLAYER_ALREADY_CONNECTED',
    );
    expect(outcomeOf(await game_server.connected(gone.player_token))).toBe('400 MATCHMAKER_PLAYER_REMOVED');
    expect(await versions()).toEqual(before);
    await game_server.disconnected(connected.player_token);
  });

  test('frees one seat, also when many players of several games leave at the same time', async () => {
    const other = await makeControlledGame(muster, { game_modes: { default: { max_players: 40 } } });
    const seats = await Promise.all(Array.from({ length: 40 }, () => seatOf(find(muster, other))));
    const other_host = await connectGameServer(muster, other, seats[0]?.lobby_id ?? '');
    const stays = await seatOf(join(muster, game, game_server.lobby_id));
    const goes = await seatOf(join(muster, game, game_server.lobby_id));
    const leaving = seats.slice(1).map(({ player_token }) => other_host.disconnected(player_token));
    const answers = await Promise.all([...leaving, game_server.disconnected(goes.player_token)]);
    expect(new Set(answers.map(outcomeOf))).toEqual(new Set(['200']));
    expect(await muster.inspector.faults(other.namespace_id)).toEqual([]);
    expect(await muster.inspector.faults(game.namespace_id)).toEqual([]);
    expect(await muster.inspector.lobbiesOf(other.namespace_id)).toMatchObject([{ player_count: 1 }]);
    expect(outcomeOf(await game_server.connected(stays.player_token))).toBe('200');
    await game_server.disconnected(stays.player_token);
  });

  test.each([
    { how: 'leaves', body: {} },
    { how: 'may come back', body: { reconnect_within_ms: 60_000 } },
  ])(
    'who $how waits while another program has locked the lobby, and delays no players of other lobbies',
    async ({ body }) => {
      const other = await makeControlledGame(muster, { game_modes: { default: {} } });
      const goes = await seatOf(find(muster, other));
      const other_server = await connectGameServer(muster, other, goes.lobby_id);
      const stuck = await seatOf(join(muster, game, game_server.lobby_id));
      await game_server.connected(stuck.player_token);
      await other_server.connected(goes.player_token);
      const report = (server: GameServer, { player_token }: { player_token: string }, more = {}) =>
        muster.api.post('/matchmaker/players/disconnected', server.token, { player_token, ...more });
      let is_reported = false;
      let leaving: ReturnType<typeof report>;
      {
        await using _ = await lockLobby(muster.database, game_server.lobby_id);
        leaving = report(game_server, stuck, body).finally(() => {
          is_reported = true;
        });
        const updating = game_server.setState({ is_locked: true });
        expect(outcomeOf(await report(other_server, goes))).toBe('200');
        expect(outcomeOf(await updating)).toBe('503 DATABASE_BUSY');
        expect(is_reported).toBe(false);
      }
      expect(outcomeOf(await leaving)).toBe('200');
      expect(outcomeOf(await game_server.connected(stuck.player_token))).toBe(
        'reconnect_within_ms' in body ? '200' : '400 MATCHMAKER_PLAYER_REMOVED',
      );
      await game_server.disconnected(stuck.player_token);
    },
  );

  test('who has left cannot connect with the same token, also if the player had not connected before', async () => {
    for (const had_connected of [true, false]) {
      const { player_token } = await seatOf(join(muster, game, game_server.lobby_id));
      if (had_connected) expect(outcomeOf(await game_server.connected(player_token))).toBe('200');
      await game_server.disconnected(player_token);
      expect(outcomeOf(await game_server.connected(player_token))).toBe('400 MATCHMAKER_PLAYER_REMOVED');
    }
  });

  test('who is the last to leave ends the lobby and its server; the next find creates a new one', async () => {
    const alone = await makeControlledGame(muster);
    const first = await seatOf(find(muster, alone));
    const second = await seatOf(find(muster, alone));
    const server = await connectGameServer(muster, alone, first.lobby_id);
    await server.connected(first.player_token);
    await server.disconnected(first.player_token);
    expect(await muster.inspector.lobbiesOf(alone.namespace_id)).toMatchObject([{ player_count: 1 }]);
    await server.disconnected(second.player_token);
    expect(await waitFor(() => muster.inspector.stopReason(first.lobby_id), 'the lobby to end')).toBe('idle');
    await waitFor(
      () => muster.events.some((event) => event.event === 'server_ended' && event.server_id === server.server_id),
      'its server to end',
    );
    expect((await seatOf(find(muster, alone))).lobby_id).not.toBe(first.lobby_id);
  });

  test('who is the last to leave keeps the lobby if the game mode keeps an idle one', async () => {
    const game_modes = { default: { idle_lobbies: { min: 0, max: 1 } }, other: { max_players: 1 } };
    const keeping = await makeControlledGame(muster, { game_modes });
    const kept = await seatOf(find(muster, keeping));
    const other = await seatOf(find(muster, keeping, { game_modes: ['other'] }));
    await (await connectGameServer(muster, keeping, kept.lobby_id)).disconnected(kept.player_token);
    // A lobby that is ended later shows that the earlier one was checked.
    await (await connectGameServer(muster, keeping, other.lobby_id)).disconnected(other.player_token);
    await waitFor(() => muster.inspector.stopReason(other.lobby_id), 'the other lobby to end');
    expect(await muster.inspector.stopReason(kept.lobby_id)).toBeUndefined();
    expect((await seatOf(find(muster, keeping))).lobby_id).toBe(kept.lobby_id);
  });

  test('who is the last to leave ends the lobby if others that were idle for longer are kept', async () => {
    const names = Array.from({ length: 32 }, (_, number) => `mode_${number}`);
    const keeps = { idle_lobbies: { min: 0, max: 32 } };
    const keeping = await makeControlledGame(muster, {
      game_modes: Object.fromEntries(names.map((name) => [name, keeps])),
    });
    const { lobby_id } = await seatOf(find(muster, keeping, { game_modes: names }));
    await muster.inspector.copyAsEmpty(lobby_id, names, 32 * 32);
    const leaving = await makeControlledGame(muster);
    const last = await seatOf(find(muster, leaving));
    await (await connectGameServer(muster, leaving, last.lobby_id)).disconnected(last.player_token);
    expect(await waitFor(() => muster.inspector.stopReason(last.lobby_id), 'the lobby to end')).toBe('idle');
    expect(await muster.inspector.lobbiesOf(keeping.namespace_id)).toHaveLength(1 + 32 * 32);
  });
});

async function developmentPlayer(): Promise<string> {
  const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/tokens/development`;
  const { token } = await muster.api.ok('POST', path, { token: game.cloud_token, body: { hostname: 'localhost' } });
  return (await seatOf(find(muster, { ...game, public_token: token }))).player_token;
}
