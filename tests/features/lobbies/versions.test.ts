import { describe, expect, test } from 'bun:test';
import { deploy } from '../../support/game.ts';
import { connectGameServer, find, join, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

const lobbyIds = async ({ namespace_id }: { namespace_id: string }) =>
  (await muster.inspector.lobbiesOf(namespace_id)).map(({ lobby_id }) => lobby_id);

describe('after a deployment', () => {
  test('an old lobby takes joins, no finds, and finds again once its version is live again', async () => {
    const kept = { default: { idle_lobbies: { min: 0, max: 5 } } };
    const game = await makeControlledGame(muster, { game_modes: kept });
    const old = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, old.lobby_id);
    await deploy(muster.api, game, game.matchmaker);
    const found = await seatOf(find(muster, game));
    expect(found.lobby_id).not.toBe(old.lobby_id);
    expect(outcomeOf(await game_server.connected(old.player_token))).toBe('200');
    expect((await seatOf(join(muster, game, old.lobby_id))).lobby_id).toBe(old.lobby_id);
    expect(await lobbyIds(game)).toEqual([old.lobby_id, found.lobby_id]);
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/version`;

    const { version_id } = game;
    await muster.api.ok('PUT', path, { token: game.cloud_token, body: { version_id } });
    expect((await seatOf(find(muster, game))).lobby_id).toBe(old.lobby_id);
  });

  test('an old lobby ends with its last player, although the game mode keeps idle ones', async () => {
    const kept = { default: { idle_lobbies: { min: 0, max: 5 } } };
    const game = await makeControlledGame(muster, { game_modes: kept });
    const old = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, old.lobby_id);
    await deploy(muster.api, game, game.matchmaker);
    await game_server.disconnected(old.player_token);
    expect(await waitFor(() => muster.inspector.stopReason(old.lobby_id), 'the old lobby to end')).toBe('idle');
  });

  test('an idle lobby that was kept ends', async () => {
    const kept = { default: { idle_lobbies: { min: 0, max: 5 } } };
    const game = await makeControlledGame(muster, { game_modes: kept });
    const old = await seatOf(find(muster, game));
    await (await connectGameServer(muster, game, old.lobby_id)).disconnected(old.player_token);
    await deploy(muster.api, game, game.matchmaker);
    expect(await waitFor(() => muster.inspector.stopReason(old.lobby_id), 'the kept lobby to end')).toBe('idle');
  });

  test('a game mode that was removed is not found, but its lobbies can be joined by id', async () => {
    const game_modes = { default: {}, retired: { actions: { join: { enabled: true } } } };
    const game = await makeControlledGame(muster, { game_modes });
    const seat = await seatOf(find(muster, game, { game_modes: ['retired'] }));
    await deploy(muster.api, game, { ...game.matchmaker, game_modes: { default: {} } });
    const answer = await find(muster, game, { game_modes: ['retired'] });
    expect(outcomeOf(answer)).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
    expect((await seatOf(join(muster, game, seat.lobby_id))).lobby_id).toBe(seat.lobby_id);
  });

  test('join is allowed by the version of the lobby', async () => {
    const game = await makeControlledGame(muster, {
      game_modes: { default: { actions: { join: { enabled: false } } } },
    });
    const { lobby_id } = await seatOf(find(muster, game));
    await deploy(muster.api, game, { ...game.matchmaker, game_modes: { default: {} } });
    expect(outcomeOf(await join(muster, game, lobby_id))).toBe('400 MATCHMAKER_JOIN_DISABLED');
  });

  test('finds during the deployment get lobbies of one of the two versions', async () => {
    const game_modes = { default: { max_players: 256 } };
    const game = await makeControlledGame(muster, { game_modes });
    const { lobby_id } = await seatOf(find(muster, game));
    const finding = Array.from({ length: 10 }, () => seatOf(find(muster, game)));
    const deploying = deploy(muster.api, game, { ...game.matchmaker, game_modes });
    finding.push(...Array.from({ length: 10 }, () => seatOf(find(muster, game))));
    const version_id = await deploying;
    expect(version_id).not.toBe(game.version_id);
    const found = new Set((await Promise.all(finding)).map((seat) => seat.lobby_id));
    const later = await seatOf(find(muster, game));
    expect(later.lobby_id).not.toBe(lobby_id);
    expect([...found].filter((one) => one !== lobby_id && one !== later.lobby_id)).toEqual([]);
  });
});
