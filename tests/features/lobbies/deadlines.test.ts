import { describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import { connectGameServer, find, makeControlledGame, seatOf, waitForFirstLobby } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

const EXPIRED = '400 MATCHMAKER_PLAYER_REGISTRATION_EXPIRED';

const muster = shareService();

const waitForRemovals = ({ namespace_id }: TestGame, count: number) =>
  waitFor(async () => {
    const reasons = await muster.inspector.removeReasons(namespace_id);
    return reasons.length >= count ? reasons : undefined;
  }, `${count} removed players`);

/** Advances the clock to a time, unless it is later already. */
function advanceTo(time_ms: number): void {
  muster.clock.advance(Math.max(0, time_ms - muster.clock.now().getTime()));
}

/** Advances the clock, and waits until the service has ended all that is due: a last seat, taken here, expires after it. */
async function passTime(milliseconds: number): Promise<void> {
  muster.clock.advance(milliseconds - 2 * MINUTE_MS);
  const last = await makeControlledGame(muster);
  await seatOf(find(muster, last));
  muster.clock.advance(2 * MINUTE_MS);
  await waitForRemovals(last, 1);
}

describe('a lobby that does not become ready', () => {
  test('within five minutes ends with its server, and its waiting players get an error', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const finding = [find(muster, game), find(muster, game)];
    const lobby_id = await waitForFirstLobby(muster, game);
    const game_server = await connectGameServer(muster, game, lobby_id);
    await passTime(5 * MINUTE_MS - 10 * SECOND_MS);
    expect(await muster.inspector.stopReason(lobby_id)).toBeUndefined();
    muster.clock.advance(10 * SECOND_MS);
    expect((await Promise.all(finding)).map(outcomeOf)).toEqual(Array(2).fill('400 MATCHMAKER_LOBBY_STOPPED'));
    expect(await muster.inspector.stopReason(lobby_id)).toBe('not_ready_in_time');
    expect(await muster.inspector.removeReasons(game.namespace_id)).toEqual(['lobby_stopped', 'lobby_stopped']);
    expect(outcomeOf(await game_server.ready())).toBe('400 MATCHMAKER_LOBBY_STOPPED');
    const hasEnded = () =>
      muster.events.some((event) => event.event === 'server_ended' && event.server_id === game_server.server_id);
    await waitFor(hasEnded, 'its server to end');
  });

  test('keeps its seats: their time begins once it is ready', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const finding = [seatOf(find(muster, game)), seatOf(find(muster, game))];
    const game_server = await connectGameServer(muster, game, await waitForFirstLobby(muster, game));
    await passTime(4 * MINUTE_MS);
    await game_server.ready();
    const [one, other] = await Promise.all(finding);
    expect(outcomeOf(await game_server.connected(one?.player_token ?? ''))).toBe('200');
    muster.clock.advance(2 * MINUTE_MS);
    expect(outcomeOf(await game_server.connected(other?.player_token ?? ''))).toBe(EXPIRED);
  });
});

describe('a seat', () => {
  test('expires after two minutes; a player who connects later gets an error, before and after the expiry is recorded', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3 } } });
    const seats = [];
    const before_seats = muster.clock.now().getTime();
    for (let player = 0; player < 3; player += 1) seats.push(await seatOf(find(muster, game)));
    const after_seats = muster.clock.now().getTime();
    const [connected, punctual, late] = seats.map(({ player_token }) => player_token);
    const { lobby_id } = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, seats[0]?.lobby_id ?? '');
    expect(lobby_id).not.toBe(game_server.lobby_id);
    expect(outcomeOf(await game_server.connected(connected ?? ''))).toBe('200');
    // The start of the server took some of the two minutes.
    advanceTo(before_seats + 2 * MINUTE_MS - 10 * SECOND_MS);
    expect(outcomeOf(await game_server.connected(punctual ?? ''))).toBe('200');
    advanceTo(after_seats + 2 * MINUTE_MS);
    // The expiry may be recorded already.
    expect(outcomeOf(await game_server.connected(late ?? ''))).toBe(EXPIRED);
    expect(await waitForRemovals(game, 2)).toEqual(['seat_expired', 'seat_expired']);
    expect(outcomeOf(await game_server.connected(late ?? ''))).toBe(EXPIRED);
    // One seat is free again, and the lobby without players has ended.
    expect((await seatOf(find(muster, game))).lobby_id).toBe(game_server.lobby_id);
    expect((await seatOf(find(muster, game))).lobby_id).not.toBe(game_server.lobby_id);
    expect(await waitFor(() => muster.inspector.stopReason(lobby_id), 'the empty lobby to end')).toBe('idle');
  });

  test('expires eight hours after the player connected; until then the lobby stays', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id, player_token } = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, lobby_id);
    await game_server.connected(player_token);
    await passTime(8 * HOUR_MS - MINUTE_MS);
    expect(await muster.inspector.lobbiesOf(game.namespace_id)).toEqual([
      { lobby_id, player_count: 1, is_ready: true },
    ]);
    muster.clock.advance(MINUTE_MS);
    expect(await waitForRemovals(game, 1)).toEqual(['timed_out']);
    expect(outcomeOf(await game_server.connected(player_token))).toBe('400 MATCHMAKER_PLAYER_REMOVED');
    expect(outcomeOf(await game_server.disconnected(player_token))).toBe('200');
    expect(await waitFor(() => muster.inspector.stopReason(lobby_id), 'the lobby to end')).toBe('idle');
  });
});
