import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { after } from '../../../src/platform/clock.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { createTestClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { deploy, setLimits } from '../../support/game.ts';
import { find, join, seatOf } from '../../support/game-server.ts';
import { makeFullGame, openOtherProcess, placeOf, queueUp } from '../../support/lobbies/queue.ts';
import { openDatabaseProxy } from '../../support/network/database-proxy.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const TOO_MANY = '400 MATCHMAKER_TOO_MANY_LOBBIES';

let opened: AsyncDisposableStack;
let near: TestService;
let other_process: ReturnType<typeof openOtherProcess>;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  near = opened.use(await openTestService());
  other_process = opened.use(openOtherProcess(near.database_address));
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

const inOneHour = () => after(new Date(), 3_600_000);

describe('a find is refused', () => {
  test('at once if it does not say how long it waits', async () => {
    expect(outcomeOf(await find(near, await makeFullGame(near)))).toBe(TOO_MANY);
  });

  test('if it gets no seat within its time', async () => {
    const game = await makeFullGame(near);
    expect([await find(near, game, { wait_ms: 0 }), await find(near, game, { wait_ms: 30 })].map(outcomeOf)).toEqual([
      TOO_MANY,
      TOO_MANY,
    ]);
    expect(await other_process.count(game)).toBe(0);
  });

  test('at once if it may not create a lobby, because the limit does not concern it', async () => {
    const body = { wait_ms: 45_000, prevent_auto_create_lobby: true };
    const answer = await find(near, await makeFullGame(near), body);
    expect(outcomeOf(answer)).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
  });

  test.each([{ wait_ms: -1 }, { wait_ms: 0.5 }, { wait_ms: 240_001 }, { wait_ms: '1' }, { ticket: 'mine' }])(
    'if its wait_ms is %p',
    async (body) => {
      expect(outcomeOf(await find(near, await makeFullGame(near), body))).toBe('400 API_BAD_BODY');
    },
  );

  test('with the ticket of a waiting find, which continues to wait', async () => {
    const game = await makeFullGame(near);
    const first = await queueUp(near, game);
    const again = await find(near, game, { wait_ms: 45_000, ticket: first.ticket.toUpperCase() });
    expect(outcomeOf(again)).toBe('400 MATCHMAKER_TICKET_TAKEN');
    await game.leave();
    expect(outcomeOf(await first.answer)).toBe('200');
  });

  test('if the queue is full', async () => {
    const game = await makeFullGame(near);
    await other_process.wait(game, inOneHour(), { count: 1_000 });
    const answer = await find(near, game, { wait_ms: 45_000 });
    expect(outcomeOf(answer)).toBe('503 MATCHMAKER_QUEUE_FULL');
    expect(answer.body.message).toContain('maximum of 1000');
    await other_process.leave(game);
  });

  test('if more finds of its client wait than it may have players', async () => {
    const game = await makeFullGame(near);
    await setLimits(near.api, { ...game, token: game.cloud_token }, { lobby_count_max: 1, max_players: 3 });
    const waiters = [await queueUp(near, game), await queueUp(near, game), await queueUp(near, game)];
    const answer = await find(near, game, { wait_ms: 45_000 });
    expect(outcomeOf(answer)).toBe('400 MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE');
    for (const { abort } of waiters) abort();
  });

  test('at its turn, if its client is over the limit by then', async () => {
    const game = await makeFullGame(near);
    const waiter = await queueUp(near, game);
    await setLimits(near.api, { ...game, token: game.cloud_token }, { lobby_count_max: 1, max_players: 1 });
    await game.leave();
    expect(outcomeOf(await waiter.answer)).toBe('400 MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE');
    expect(await other_process.count(game)).toBe(0);
  });
});

describe('a waiting find', () => {
  test('gets the next free seat, with the answer of any find', async () => {
    const game = await makeFullGame(near);
    const waiter = await queueUp(near, game);
    await game.leave();
    const { lobby_id, player_token } = await seatOf(waiter.answer);
    expect(lobby_id).toBe(game.lobby_id);
    expect(outcomeOf(await game.game_server.connected(player_token))).toBe('200');
    expect(await other_process.count(game)).toBe(0);
  });

  test('gets a lobby of its own once one has ended, or once the limit is raised', async () => {
    const game = await makeFullGame(near);
    const first = await queueUp(near, game);
    const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${game.lobby_id}`;
    await near.api.ok('DELETE', path, { token: game.cloud_token });
    const made = await seatOf(first.answer);
    expect(made.lobby_id).not.toBe(game.lobby_id);
    await seatOf(find(near, game));
    const second = await queueUp(near, game);
    await setLimits(near.api, { ...game, token: game.cloud_token }, { lobby_count_max: 2 });
    expect((await seatOf(second.answer)).lobby_id).not.toBe(made.lobby_id);
  });

  test('gets its seat in the order of arrival', async () => {
    const game = await makeFullGame(near);
    const waiters = [await queueUp(near, game), await queueUp(near, game), await queueUp(near, game)];
    for (const [index, waiter] of waiters.entries()) {
      await game.leave();
      game.addSeat((await seatOf(waiter.answer)).player_token);
      expect(waiters.map(({ outcome }) => outcome === '200')).toEqual([0, 1, 2].map((place) => place <= index));
    }
  });

  test('has priority over later finds and custom lobbies, but not over joins', async () => {
    const create = { actions: { create: { enabled: true } } };
    const game = await makeFullGame(near, create);
    await other_process.wait(game, inOneHour());
    await game.leave();
    // The other process does not take it, and neither does any other find.
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    const prevented = await find(near, game, { prevent_auto_create_lobby: true });
    expect(outcomeOf(prevented)).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    await setLimits(near.api, { ...game, token: game.cloud_token }, { lobby_count_max: 2 });
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    const custom = await near.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
    expect(outcomeOf(custom)).toBe(TOO_MANY);
    expect(outcomeOf(await join(near, game, game.lobby_id))).toBe('200');
    await other_process.leave(game);
    expect(outcomeOf(await find(near, game))).toBe('200');
  });

  test('does not reserve what it did not request', async () => {
    const game = await makeFullGame(near, {}, { other: { max_players: 5 } });
    await setLimits(near.api, { ...game, token: game.cloud_token }, { lobby_count_max: 2 });
    const { lobby_id } = await seatOf(find(near, game, { game_modes: ['other'] }));
    await other_process.wait(game, inOneHour());
    expect((await seatOf(find(near, game, { game_modes: ['other'] }))).lobby_id).toBe(lobby_id);
    await other_process.leave(game);
  });

  test('gets all seats of its party at once, before those that came later', async () => {
    const game = await makeFullGame(near, { max_players: 4 });
    const party = await queueUp(near, game, { players: 2 });
    const single = await queueUp(near, game);
    await game.leave();
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    expect([party.outcome, single.outcome]).toEqual([undefined, undefined]);
    await game.leave();
    expect((await party.answer).body.players).toHaveLength(2);
    expect(single.outcome).toBeUndefined();
    await game.leave();
    await seatOf(single.answer);
    expect(await other_process.count(game)).toBe(0);
  });

  test('gets a lobby of the new version after a deployment', async () => {
    const game = await makeFullGame(near);
    const waiter = await queueUp(near, game);
    const version_id = await deploy(near.api, game, game.matchmaker);
    await setLimits(near.api, { ...game, token: game.cloud_token }, { lobby_count_max: 2 });
    const { lobby_id } = await seatOf(waiter.answer);
    expect(await other_process.versionOf(lobby_id)).toBe(version_id);
  });

  test('is refused if the new version does not have its game mode', async () => {
    const game = await makeFullGame(near);
    const waiter = await queueUp(near, game);
    await deploy(near.api, game, { ...game.matchmaker, game_modes: { another: {} } });
    expect(outcomeOf(await waiter.answer)).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
    expect(await other_process.count(game)).toBe(0);
  });

  test('has a receipt that shows the wait', async () => {
    const game = await makeFullGame(near);
    const waiter = await queueUp(near, game);
    await game.leave();
    const { headers } = await waiter.answer;
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/matchmaker/receipts`;
    const ray_id = headers.get('rvt-ray-id');
    const { receipt } = await near.api.ok('GET', `${path}/${ray_id}`, { token: game.cloud_token });
    expect(receipt).toMatchObject({ request: { wait_ms: 45_000 }, outcome: { lobby_id: game.lobby_id } });
    const { queued, decided, seated } = receipt.stages_ms;
    expect(queued).toBeGreaterThan(0);
    expect([queued, decided, seated].toSorted((one, other) => one - other)).toEqual([queued, decided, seated]);
  });
});

describe('a find whose client disconnects', () => {
  test('leaves the queue, and the next one has its position', async () => {
    const game = await makeFullGame(near);
    const [first, second] = [await queueUp(near, game), await queueUp(near, game)];
    expect(await placeOf(near, game, second.ticket)).toMatchObject({ position: 2, length: 2 });
    first.abort();
    await waitFor(
      async () => (await placeOf(near, game, second.ticket)).position === 1,
      'the first one to leave the queue',
    );
    await game.leave();
    await seatOf(second.answer);
  });

  test('or whose process stops, leaves the queue at once; after a crash, when its lease ends', async () => {
    const game = await makeFullGame(near);
    const far = await openTestService({ MUSTER_DATACENTER: 'far' }, { database_of: near });
    const stopped = await queueUp(far, game, { regions: ['local'] });
    const waiter = await queueUp(near, game);
    await far[Symbol.asyncDispose]();
    expect(stopped.outcome).toBe('503 SERVICE_STOPPING');
    expect(await placeOf(near, game, waiter.ticket)).toMatchObject({ position: 1, length: 1 });
    waiter.abort();
    await other_process.wait(game, new Date());
    const next = await queueUp(near, game);
    await game.leave();
    await seatOf(next.answer);
    expect(await other_process.count(game)).toBe(0);
  });

  test('while it cannot leave the queue, delays the next one only until its lease ends', async () => {
    const [game, elsewhere] = [await makeFullGame(near), await makeFullGame(near)];
    const [gone, next] = [await queueUp(near, game), await queueUp(near, game)];
    // Another find that waits, for which the process goes on renewing leases.
    const staying = await queueUp(near, elsewhere);
    const refusal = await other_process.refuseToLeave(gone.ticket);
    gone.abort();
    await waitFor(refusal.hasRefused, 'the removal of the find to be refused');
    await refusal.allow();
    await game.leave();
    await other_process.endLease(gone.ticket);
    await seatOf(next.answer);
    expect(staying.outcome).toBeUndefined();
    staying.abort();
  });
});

describe('a ticket', () => {
  test('shows its holder the position, also by long poll', async () => {
    const game = await makeFullGame(near);
    const { public_token: token } = game;
    const ticket = crypto.randomUUID();
    const path = `/matchmaker/queue/${ticket}`;
    const before = await near.api.ok('GET', path, { token });
    expect(before).toMatchObject({ ticket, is_waiting: false });
    const poll = ({ watch }: { watch: { index: string } }) =>
      near.api.ok('GET', `${path}?watch_index=${watch.index}`, { token });
    const first = await queueUp(near, game);
    const next_answer = poll(await near.api.ok('GET', path, { token }));
    const second = queueUp(near, game, { ticket });
    const came = await next_answer;
    expect(came).toMatchObject({ ticket, is_waiting: true, position: 2, length: 2 });
    const moving = poll(came);
    await game.leave();
    game.addSeat((await seatOf(first.answer)).player_token);
    const moved = await moving;
    expect(moved).toMatchObject({ is_waiting: true, position: 1, length: 1 });
    const last_answer = poll(moved);
    await game.leave();
    expect(await last_answer).toMatchObject({ is_waiting: false });
    await seatOf((await second).answer);
  });

  test('shows nothing without a token or in another namespace', async () => {
    const [game, other] = [await makeFullGame(near), await makeFullGame(near)];
    const { ticket, abort } = await queueUp(near, game);
    expect(await placeOf(near, other, ticket)).toEqual({ ticket, is_waiting: false });
    expect(await placeOf(near, game, ticket)).toMatchObject({ is_waiting: true });
    expect(outcomeOf(await near.api.get(`/matchmaker/queue/${ticket}`))).toBe('401 API_UNAUTHORIZED');
    expect(outcomeOf(await near.api.get('/matchmaker/queue/mine', game.public_token))).toBe('404 API_NOT_FOUND');
    abort();
  });
});

/** Reads the state of the loop that removes abandoned finds. */
async function readLoop({ api, administrator_token }: TestService) {
  const { loops } = await api.ok('GET', '/cloud/service', { token: administrator_token });
  return loops.find(({ name }: { name: string }) => name === 'queue');
}

test('queue: a lost table is a failure of each step', async () => {
  await using service = await openTestService();
  await using database = openDatabase(service.database_address, 1);
  await database.queries.execute(sql`alter table queued_finds rename to lost_table`);
  await waitFor(async () => (await readLoop(service)).failures >= 3, 'three failures in a row');
  await database.queries.execute(sql`alter table lost_table rename to queued_finds`);
  await waitFor(async () => (await readLoop(service)).failures === 0, 'a step that succeeds');
});

test('queue: after an outage of the database, finds of other processes keep their places until those could renew their leases', async () => {
  await using opened_here = new AsyncDisposableStack();
  const { address } = opened_here.use(await openTestDatabase());
  const { url, proxy } = opened_here.use(await openDatabaseProxy(address));
  const database_of = { database_address: { url }, clock: createTestClock() };
  const service = opened_here.use(await openTestService({}, { database_of }));
  const other = opened_here.use(openOtherProcess(address));
  const game = await makeFullGame(service);
  await proxy.cut();
  await waitFor(
    () => service.events.some((event) => event.event === 'loop_failed' && event.loop === 'queue'),
    'the process to miss the database',
  );
  // Its lease ends during the outage.
  await other.wait(game, new Date());
  await proxy.heal();
  await waitFor(async () => (await readLoop(service))?.failures === 0, 'the process to be back');
  expect(await other.count(game)).toBe(1);
  await waitFor(async () => (await other.count(game)) === 0, 'the find to be removed later');
});
