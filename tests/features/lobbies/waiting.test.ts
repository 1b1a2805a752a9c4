import { describe, expect, test } from 'bun:test';
import { listServers, type TestGame } from '../../support/game.ts';
import {
  connectGameServer,
  find,
  join,
  makeControlledGame,
  seatOf,
  waitForFirstLobby,
} from '../../support/game-server.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { IMMEDIATE_MS, waitFor } from '../../support/wait.ts';

const muster = shareService();
/** Long enough for a busy machine to seat both finds of a test. */
const REQUEST_TIMEOUT_MS = 5_000;
const impatient = shareService({
  MUSTER_REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
  MUSTER_WATCH_HOLD_MS: '1000',
});

type Muster = typeof muster;

const waitForSeats = async (
  { inspector }: Muster,
  { namespace_id }: TestGame,
  player_counts: number[],
  within_ms?: number,
): Promise<void> => {
  await waitFor(
    async () => Bun.deepEquals(await inspector.playerCounts(namespace_id), player_counts),
    `the seats to be ${player_counts}`,
    within_ms,
  );
};

const waitForServersToEnd = (owner: Muster, game: TestGame) =>
  waitFor(async () => (await listServers(owner, game)).length === 0, 'no server to be left');

describe('a find that waits for its lobby', () => {
  test('gets an error if the server ends before it is ready, like all others that wait for it', async () => {
    const source = "console.error('no map'); process.exit(3);";
    const game = await makeControlledGame(muster, { source });
    const answers = await Promise.all([find(muster, game), find(muster, game), find(muster, game)]);
    for (const answer of answers) {
      expect(outcomeOf(answer)).toBe('400 MATCHMAKER_LOBBY_STOPPED');
    }
    expect(await muster.inspector.lobbiesOf(game.namespace_id)).toEqual([]);
    expect(new Set(await muster.inspector.removeReasons(game.namespace_id))).toEqual(new Set(['lobby_stopped']));
    const ended = await waitFor(
      async () => (await listServers(muster, game, { include_destroyed: true }))[0],
      'the server that ended',
    );
    expect(await muster.inspector.stopReason(ended.tags.lobby_id)).toBe('server_ended');
  });

  test('gets an error if the server is destroyed', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const finding = find(muster, game);
    const lobby_id = await waitForFirstLobby(muster, game);
    const { server_id } = await connectGameServer(muster, game, lobby_id);
    const path = `/games/${game.game_id}/environments/${game.namespace_id}/servers/${server_id}`;
    await muster.api.ok('DELETE', path, { token: game.cloud_token });
    expect(outcomeOf(await finding)).toBe('400 MATCHMAKER_LOBBY_STOPPED');
    expect(await muster.inspector.lobbiesOf(game.namespace_id)).toEqual([]);
  });

  test('gives its seat back at once if the client disconnects; the others go on waiting', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const leaving = new AbortController();
    const finding = find(muster, game, {}, leaving.signal);
    await waitForSeats(muster, game, [1]);
    const lobby_id = await waitForFirstLobby(muster, game);
    const staying = join(muster, game, lobby_id);
    await waitForSeats(muster, game, [2]);
    leaving.abort();
    await expect(finding).rejects.toThrow('abort');
    await waitForSeats(muster, game, [1], IMMEDIATE_MS);
    expect(await muster.inspector.removeReasons(game.namespace_id)).toEqual(['request_ended']);
    await (await connectGameServer(muster, game, lobby_id)).ready();
    expect((await seatOf(staying)).lobby_id).toBe(lobby_id);
  });

  test('in a lobby without other players leaves no lobby and no server if the client disconnects', async () => {
    const game = await makeControlledGame(muster, { is_ready: false });
    const leaving = new AbortController();
    const finding = find(muster, game, {}, leaving.signal);
    const lobby_id = await waitForFirstLobby(muster, game);
    leaving.abort();
    await expect(finding).rejects.toThrow('abort');
    expect(await waitFor(() => muster.inspector.stopReason(lobby_id), 'the lobby to end')).toBe('idle');
    await waitForServersToEnd(muster, game);
  });

  test('a find whose lobby is already ready keeps no seat if the client disconnects before the answer', async () => {
    const game = await makeControlledGame(muster);
    await seatOf(find(muster, game));
    const leaving = new AbortController();
    const release = await muster.inspector.holdSeats(game.namespace_id);
    const finding = find(muster, game, {}, leaving.signal);
    // The service gets this request before the next one, and notices the disconnect in between.
    await muster.api.ok('GET', '/health/live');
    leaving.abort();
    await expect(finding).rejects.toThrow('abort');
    await muster.api.ok('GET', '/health/live');
    await release();
    await waitFor(async () => {
      const reasons = await muster.inspector.removeReasons(game.namespace_id);
      return reasons.length > 0 && Bun.deepEquals(reasons, ['request_ended']);
    }, 'the seat to be given back');
    await waitForSeats(muster, game, [1]);
  });
});

test('a request is answered when its process stops before the lobby is ready, and its seat is given back', async () => {
  const game = await makeControlledGame(muster, { is_ready: false });
  const staying = find(muster, game);
  const lobby_id = await waitForFirstLobby(muster, game);
  const far = await openTestService({ MUSTER_DATACENTER: 'far' }, { database_of: muster });
  const stopped = join(far, game, lobby_id);
  await waitForSeats(muster, game, [2]);
  await far[Symbol.asyncDispose]();
  expect(outcomeOf(await stopped)).toBe('503 SERVICE_STOPPING');
  await waitForSeats(muster, game, [1]);
  await (await connectGameServer(muster, game, lobby_id)).ready();
  expect((await seatOf(staying)).lobby_id).toBe(lobby_id);
});

describe('a request over its time limit', () => {
  test('for a lobby that does not become ready is answered; its seat is given back and the server ended', async () => {
    const game = await makeControlledGame(impatient, { is_ready: false });
    const [first, second] = await Promise.all([find(impatient, game), find(impatient, game)]);
    for (const answer of [first, second]) {
      expect(outcomeOf(answer)).toBe('503 MATCHMAKER_LOBBY_NOT_READY');
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    await waitForSeats(impatient, game, []);
    expect(await impatient.inspector.removeReasons(game.namespace_id)).toEqual(['request_ended', 'request_ended']);
    await waitForServersToEnd(impatient, game);
  });

  test('because of a slow database has no seat afterwards', async () => {
    const game = await makeControlledGame(impatient);
    await seatOf(find(impatient, game));
    const release = await impatient.inspector.holdSeats(game.namespace_id);
    expect(outcomeOf(await find(impatient, game))).toBe('503 API_REQUEST_TIMEOUT');
    await release();
    await waitFor(
      async () => (await impatient.inspector.removeReasons(game.namespace_id)).length === 1,
      'the seat to be free',
    );
    await waitForSeats(impatient, game, [1]);
  });
});
