import { afterAll, beforeAll, expect, test } from 'bun:test';
import { find, seatOf } from '../../support/game-server.ts';
import { type Inspector, openInspector } from '../../support/inspector.ts';
import { makeFullGame, openOtherProcess, placeOf, queueUp, type Waiter } from '../../support/lobbies/queue.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const HERE = { regions: ['local'] };
const SEATS = 24;
const TOO_MANY = '400 MATCHMAKER_TOO_MANY_LOBBIES';

let opened: AsyncDisposableStack;
let machines: [TestService, TestService];
let inspector: Inspector;
let other_process: ReturnType<typeof openOtherProcess>;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const first = opened.use(await openTestService());
  machines = [first, opened.use(await openTestService({ MUSTER_DATACENTER: 'far' }, { database_of: first }))];
  inspector = opened.use(openInspector(first));
  other_process = opened.use(openOtherProcess(first.database_address));
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

const machine = (number: number) => machines[number % 2 === 0 ? 0 : 1];
const isSeated = ({ outcome }: Waiter) => outcome === '200';

test('queue: two machines seat waiting finds in one order while clients disconnect and send finds that do not wait', async () => {
  const game = await makeFullGame(machines[0], { max_players: SEATS });
  const waiters: Waiter[] = [];
  for (let number = 0; number < 30; number += 1) waiters.push(await queueUp(machine(number >> 1), game, HERE));
  expect(await placeOf(machines[0], game, waiters.at(-1)?.ticket ?? '')).toMatchObject({ position: 30, length: 30 });

  // More finds wait than seats become free, so a find that does not wait gets none.
  let is_over = false;
  const refused: string[] = [];
  const not_waiting = Promise.all(
    [0, 1, 2, 3].map(async (number) => {
      while (!is_over) refused.push(outcomeOf(await find(machine(number), game, HERE)));
    }),
  );
  const aborted = waiters.filter((_, number) => number % 5 === 3);
  const waiting = waiters.filter((_, number) => number % 5 !== 3);
  for (const { abort } of aborted) abort();
  await waitFor(
    async () => (await other_process.count(game)) === waiting.length,
    'the disconnected ones to leave the queue',
  );
  for (let free = 1; free <= 20; free += 5) {
    await Promise.all(Array.from({ length: 5 }, () => game.leave()));
    await waitFor(() => waiting.filter(isSeated).length >= free + 4, `${free + 4} to be seated`);
    expect(waiting.map(isSeated)).toEqual(waiting.map((_, index) => index < free + 4));
  }
  is_over = true;
  await not_waiting;
  expect([...new Set(refused)]).toEqual([TOO_MANY]);
  expect(aborted.map(({ outcome }) => outcome)).toEqual(aborted.map(() => 'aborted'));
  expect(await inspector.playerCounts(game.namespace_id)).toEqual([SEATS]);
  for (const waiter of waiting.slice(20)) waiter.abort();
  await waitFor(async () => (await other_process.count(game)) === 0, 'the queue to be empty');
  expect([await inspector.faults(game.namespace_id), await inspector.deadlocks()]).toEqual([[], 0]);
}, 300_000);

test('queue: parties and single players on two machines get all their seats, each once', async () => {
  const game = await makeFullGame(machines[0], { max_players: SEATS });
  const sizes = [3, 1, 2, 4, 1, 1, 5, 2];
  const waiters: Waiter[] = [];
  for (const [number, players] of sizes.entries()) {
    waiters.push(await queueUp(machine(number), game, { ...HERE, players }));
  }
  await Promise.all(Array.from({ length: 19 }, () => game.leave()));
  const answers = await Promise.all(waiters.map(({ answer }) => answer));
  const tokens = answers.flatMap(({ body }) => body.players ?? [body.player]).map(({ token }) => token);
  expect(answers.map(({ body }) => (body.players ?? [body.player]).length)).toEqual(sizes);
  expect(new Set(tokens).size).toBe(19);
  for (const token of tokens) expect(outcomeOf(await game.game_server.connected(token))).toBe('200');
  expect([await other_process.count(game), await inspector.faults(game.namespace_id)]).toEqual([0, []]);
}, 300_000);

test('queue: many concurrent finds on two machines all get their turn once lobbies may be created again', async () => {
  const game = await makeFullGame(machines[0]);
  const waiters = await Promise.all(
    Array.from({ length: 40 }, (_, number) => queueUp(machine(number), game, { ...HERE, players: 1 + (number % 2) })),
  );
  expect(waiters.map(({ outcome }) => outcome)).toEqual(waiters.map(() => undefined));
  expect(await other_process.count(game)).toBe(40);
  const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/mm-config`;
  const body = { lobby_count_max: 64, max_players: 1_000 };
  await machines[0].api.ok('POST', path, { token: game.cloud_token, body });
  const seats = await Promise.all(waiters.map(({ answer }) => seatOf(answer)));
  expect(new Set(seats.map(({ player_token }) => player_token)).size).toBe(40);
  expect([await other_process.count(game), await inspector.faults(game.namespace_id)]).toEqual([0, []]);
  expect(await inspector.deadlocks()).toBe(0);
}, 300_000);
