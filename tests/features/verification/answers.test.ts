import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { find, join, makeControlledGame, receiptOf } from '../../support/game-server.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { openProvider } from '../../support/provider.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const provider = openProvider();
const FREE_PORT = findFreePort();
const muster = shareService({
  MUSTER_OUTBOUND_ALLOW: `${provider.allow}, 127.0.0.1:${FREE_PORT}`,
  MUSTER_RECEIPTS_PER_SECOND_MAX: '10000',
});
afterAll(() => provider[Symbol.asyncDispose]());
beforeEach(() => {
  provider.requests.length = 0;
  provider.answer = () => new Response(null, { status: 204 });
});

type Game = Awaited<ReturnType<typeof makeControlledGame>>;
const verified = () => ({ enabled: true, verification_config: { url: provider.url } });
const onAll = () => ({ actions: { find: verified(), join: verified(), create: verified() } });
const create = (game: Game) =>
  muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
/** Holds the next answers of the verification server until `accept` is called. `arrived` resolves at the first request. */
function holdAnswers() {
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Response>();
  provider.answer = () => {
    arrived.resolve();
    return answer.promise;
  };
  return { arrived: arrived.promise, accept: () => answer.resolve(new Response()) };
}
const refuse = (status: number) => {
  provider.answer = () => new Response('no', { status });
};

describe('verification: an answer', () => {
  test('with any status from 200 to 299 accepts, for each action', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
    for (const status of [200, 201, 202, 204, 226, 299]) {
      provider.answer = () => new Response(status === 204 ? null : 'body', { status });
      const found = await find(muster, game);
      expect([status, outcomeOf(found)]).toEqual([status, '200']);
      expect(outcomeOf(await join(muster, game, found.body.lobby.lobby_id))).toBe('200');
    }
    expect(outcomeOf(await create(game))).toBe('200');
    expect(provider.requests.length).toBe(13);
  });

  test('with any other status rejects, for each action, and nothing is created or kept', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
    const { body } = await find(muster, game);
    for (const status of [300, 301, 304, 400, 401, 403, 404, 408, 429, 500, 503, 599]) {
      refuse(status);
      const before = await muster.inspector.measure();
      for (const sent of [find(muster, game), join(muster, game, body.lobby.lobby_id), create(game)]) {
        const answer = await sent;
        expect([status, outcomeOf(answer)]).toEqual([status, '400 MATCHMAKER_VERIFICATION_FAILED']);
        expect(await receiptOf(muster, game, answer)).toMatchObject({
          verification: { game_mode_id: 'default', is_accepted: false, status },
          outcome: { code: 'MATCHMAKER_VERIFICATION_FAILED' },
        });
      }
      expect(await muster.inspector.measure()).toEqual(before);
    }
    expect(provider.requests.length).toBe(1 + 12 * 3);
  });

  test('is in the receipt of the request, with the lobby of the seat', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
    const first = await find(muster, game);
    const receipt = await receiptOf(muster, game, first);
    expect(receipt.verification).toMatchObject({ game_mode_id: 'default', is_accepted: true, status: 204 });
    const { checked, verified: verified_ms, decided } = receipt.stages_ms;
    expect([checked, verified_ms, decided]).toEqual([checked, verified_ms, decided].toSorted((a, b) => a - b));
    expect((await receiptOf(muster, game, await find(muster, game))).verification.lobby_id).toBe(
      first.body.lobby.lobby_id,
    );
  });

  test('that never arrives has an error code of its own, and the receipt says why', async () => {
    const action = { enabled: true, verification_config: { url: `http://127.0.0.1:${FREE_PORT}/` } };
    const game = await makeControlledGame(muster, { game_modes: { default: { actions: { find: action } } } });
    const answer = await find(muster, game);
    expect(outcomeOf(answer)).toBe('400 MATCHMAKER_VERIFICATION_REQUEST_FAILED');
    expect((await receiptOf(muster, game, answer)).verification).toMatchObject({
      game_mode_id: 'default',
      is_accepted: false,
      failure: 'unreachable',
    });
  });
});

describe('verification: a find in several game modes', () => {
  /** Makes a game with a mode without verification and one with it, each for two players. */
  function makeMixedGame() {
    const open = { max_players: 2 };
    return makeControlledGame(muster, { game_modes: { open, guarded: { ...open, actions: { find: verified() } } } });
  }
  const modeOf = async (game: Game, lobby_id: string) => {
    const { lobbies } = await muster.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token });
    return lobbies.find((lobby: { lobby_id: string }) => lobby.lobby_id === lobby_id)?.game_mode_id;
  };

  test('is verified for the lobby in which it gets a seat, although a mode without verification comes first', async () => {
    const game = await makeMixedGame();
    const guarded = await find(muster, game, { game_modes: ['guarded'] });
    refuse(403);
    provider.requests.length = 0;
    const both = { game_modes: ['open', 'guarded'] };
    expect(outcomeOf(await find(muster, game, both))).toBe('400 MATCHMAKER_VERIFICATION_FAILED');
    expect(provider.requests.map(({ body }) => [body.game.game_mode_name_id, body.game.lobby?.lobby_id])).toEqual([
      ['guarded', guarded.body.lobby.lobby_id],
    ]);
  });

  test('is not verified in a lobby without verification, and gets no other lobby', async () => {
    const game = await makeMixedGame();
    const open = await find(muster, game, { game_modes: ['open'] });
    refuse(403);
    const both = { game_modes: ['guarded', 'open'] };
    expect((await find(muster, game, both)).body.lobby.lobby_id).toBe(open.body.lobby.lobby_id);
    // That lobby is full and there is no other, so a lobby of the first mode would be created.
    expect(outcomeOf(await find(muster, game, both))).toBe('400 MATCHMAKER_VERIFICATION_FAILED');
    expect(provider.requests.length).toBe(1);
  });

  test('without auto-create gets a lobby without verification, or is refused', async () => {
    const game = await makeMixedGame();
    refuse(403);
    const both = { game_modes: ['guarded', 'open'], prevent_auto_create_lobby: true };
    expect(outcomeOf(await find(muster, game, both))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    const open = await find(muster, game, { game_modes: ['open'] });
    expect((await find(muster, game, both)).body.lobby.lobby_id).toBe(open.body.lobby.lobby_id);
    expect(outcomeOf(await find(muster, game, { ...both, game_modes: ['guarded'] }))).toBe(
      '400 MATCHMAKER_NO_AVAILABLE_LOBBIES',
    );
    expect(provider.requests.length).toBe(0);
  });

  test('gets its seat in the mode for which it was verified, whatever is free by then', async () => {
    const game = await makeMixedGame();
    const guarded = await find(muster, game, { game_modes: ['guarded'] });
    const { arrived, accept } = holdAnswers();
    const seeking = find(muster, game, { game_modes: ['open', 'guarded'] });
    await arrived;
    // Another player takes the seat in between, and there is one in the other mode.
    expect((await join(muster, game, guarded.body.lobby.lobby_id)).status).toBe(200);
    const open = await find(muster, game, { game_modes: ['open'] });
    accept();
    const { body } = await seeking;
    expect([guarded.body.lobby.lobby_id, open.body.lobby.lobby_id]).not.toContain(body.lobby.lobby_id);
    expect(await modeOf(game, body.lobby.lobby_id)).toBe('guarded');
  });

  test('gets no lobby of a mode that does not allow find', async () => {
    const shut = {
      actions: { find: { ...verified(), enabled: false }, create: { enabled: true, enable_public: true } },
    };
    const game = await makeControlledGame(muster, { game_modes: { open: {}, shut } });
    const made = await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'shut' });
    expect(made.status).toBe(200);
    const found = await find(muster, game, { game_modes: ['open', 'shut'] });
    expect(found.body.lobby.lobby_id).not.toBe(made.body.lobby.lobby_id);
    expect(provider.requests.length).toBe(0);
  });
});

test('verification: a client without a user agent and a location is described without them', async () => {
  const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
  const { port, hostname } = new URL(muster.api.base_url);
  const body = JSON.stringify({ game_modes: ['default'] });
  const raw = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } });
  raw.write(`POST /matchmaker/lobbies/find HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${game.public_token}\r\n`);
  raw.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
  await waitFor(() => provider.requests.length === 1, 'the request');
  expect(provider.requests[0]?.body.clients).toEqual({
    '127.0.0.1': { user_agent: null, latitude: null, longitude: null },
  });
  raw.end();
});

test('verification: a player who disconnects during it gets no seat, even if it is accepted', async () => {
  const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
  muster.events.length = 0;
  const { arrived, accept } = holdAnswers();
  const leaving = new AbortController();
  const left = find(muster, game, {}, leaving.signal).catch(() => undefined);
  await arrived;
  const before = await muster.inspector.measure();
  leaving.abort();
  await left;
  const hasLeft = () => muster.events.some((one) => one.event === 'request_served' && one.status === 400);
  await waitFor(hasLeft, 'the service to notice');
  accept();
  provider.answer = () => new Response();
  const other = await find(muster, game);
  expect(other.status).toBe(200);
  const after = await muster.inspector.measure();
  expect([Number(after.players) - Number(before.players), Number(after.lobbies) - Number(before.lobbies)]).toEqual([
    1, 1,
  ]);
});

test('verification: a stop of the service during it is no failure of the verification server', async () => {
  const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
  const settings = { MUSTER_DATACENTER: 'far', MUSTER_OUTBOUND_ALLOW: provider.allow };
  const far = await openTestService(settings, { database_of: muster });
  const { arrived, accept } = holdAnswers();
  const waiting = find(far, game, { regions: ['local'] });
  await arrived;
  await far[Symbol.asyncDispose]();
  expect(outcomeOf(await waiting)).toBe('503 SERVICE_STOPPING');
  accept();
});

test('verification: neither its headers nor the query of its address are in the answer, in the receipt or in the log', async () => {
  const canary = `canary-${crypto.randomUUID()}`;
  const verification = { url: `${provider.url}?key=${canary}`, headers: { 'x-key': canary } };
  refuse(500);
  const game = await makeControlledGame(muster, {
    game_modes: { default: { actions: { find: { enabled: true, verification } } } },
  });
  const answer = await find(muster, game);
  expect(provider.requests[0]?.path).toContain(canary);
  expect(JSON.stringify([answer.body, muster.events, await receiptOf(muster, game, answer)])).not.toContain(canary);
});
