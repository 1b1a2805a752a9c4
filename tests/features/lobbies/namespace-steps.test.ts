import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createNamespaceSteps } from '../../../src/features/lobbies/upkeep/namespace-steps.ts';
import { createTestClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import type { TestGame } from '../../support/game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { type Inspector, openInspector } from '../../support/inspector.ts';
import { LONE_MACHINE } from '../../support/machines/lone-machine.ts';
import { type Matchmaker, openMatchmaker, TIMES } from '../../support/matchmaker/matchmaker.ts';
import { recordStart } from '../../support/record-start.ts';
import { openTestService } from '../../support/service.ts';

const clock = createTestClock();
const opened = new AsyncDisposableStack();
let matchmaker: Matchmaker;
let inspector: Inspector;
/** The lobbies of the first one come first in each step. */
let games: [TestGame, TestGame];

beforeAll(async () => {
  const { address: database_address } = opened.use(await openTestDatabase());
  {
    await using service = await openTestService({}, { database_of: { database_address, clock } });
    games = [await makeControlledGame(service), await makeControlledGame(service)];
  }
  matchmaker = opened.use(await openMatchmaker({ database_address, clock }));
  inspector = opened.use(openInspector({ database_address }));
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

/** Opens a lobby of each game with a player who has a seat there. */
async function openLobbies() {
  const lobbies = [];
  for (const { namespace_id } of games) {
    const request = matchmaker.ask(namespace_id, { kind: 'find', body: { game_modes: ['default'] } });
    const waiting = await request.waits;
    if (!waiting) throw new Error('the find waits for its lobby');
    lobbies.push({ ...waiting, namespace_id, request });
  }
  const [first, second] = lobbies;
  if (!first || !second) throw new Error('each game has a lobby');
  return [first, second] as const;
}

/** Lets the player leave before the lobby is ready. */
async function leave({ request }: Awaited<ReturnType<typeof openLobbies>>[number]): Promise<void> {
  request.abort();
  await request.outcome;
}

async function endAll(): Promise<void> {
  clock.advance(TIMES.player_timeout_ms);
  await matchmaker.reconcile();
  for (const { namespace_id } of games) expect(await inspector.lobbiesOf(namespace_id)).toEqual([]);
}

test('lobbies loop: a version that cannot be read keeps no other game from ending its empty lobbies', async () => {
  const [broken, other] = await openLobbies();
  for (const one of [broken, other]) await leave(one);
  const cause = new Error('the version cannot be read');
  const versions = {
    ...matchmaker.versions,
    async idleLimits(key: { game_id: string; version_id: string }) {
      if (key.game_id === games[0].game_id) throw cause;
      return await matchmaker.versions.idleLimits(key);
    },
  };
  const events = await matchmaker.reconcile({ versions });
  const { namespace_id } = broken;
  expect(events).toContainEqual({ event: 'lobbies_step_failed', step: 'idle', namespace_id, cause });
  expect(await inspector.stopReason(broken.lobby_id)).toBeUndefined();
  expect(await inspector.stopReason(other.lobby_id)).toBe('idle');
  await endAll();
});

test('lobbies loop: a locked list of lobbies keeps no other game from removing overdue seats', async () => {
  const [locked, other] = await openLobbies();
  for (const { lobby_id, request } of [locked, other]) {
    await recordStart(matchmaker.database.queries, lobby_id, clock.now());
    await matchmaker.lobbies.ready({ lobby_id });
    expect(await request.outcome).toMatchObject({ answer: { lobby: { lobby_id } } });
  }
  clock.advance(TIMES.seat_timeout_ms + 1);
  const release = await inspector.holdSeats(locked.namespace_id);
  const events = await matchmaker.reconcile();
  await release();
  const { namespace_id } = locked;
  const cause = expect.any(Error);
  expect(events).toContainEqual({ event: 'lobbies_step_failed', step: 'seats', namespace_id, cause });
  expect(await inspector.playerCount(locked.lobby_id)).toBe(1);
  expect(await inspector.removeReasons(other.namespace_id)).toContain('seat_expired');
  await matchmaker.reconcile();
  expect(await inspector.removeReasons(locked.namespace_id)).toContain('seat_expired');
  await endAll();
});

test('lobbies loop: a hint that cannot be written is reported, and keeps nothing else from being done', async () => {
  const [silent, other] = await openLobbies();
  await leave(other);
  clock.advance(11_000);
  const cause = new Error('the log cannot be written');
  const servers = {
    ...matchmaker.servers,
    selectRunningOn: async ({ server_ids }: { server_ids: string[] }) => new Set(server_ids),
    addLogLine: () => Promise.reject(cause),
  };
  const events = await matchmaker.reconcile({ servers });
  const { namespace_id } = silent;
  expect(events).toContainEqual({ event: 'lobbies_step_failed', step: 'hints', namespace_id, cause });
  expect(await inspector.stopReason(other.lobby_id)).toBe('idle');
  await leave(silent);
  await endAll();
});

test('lobbies loop: a failure that lasts is reported once, and again after a success or with another cause', async () => {
  const reported: unknown[] = [];
  const { forEachNamespace } = createNamespaceSteps({ emit: (event) => void reported.push(event) });
  const lobbies = [{ namespace_id: 'one' }, { namespace_id: 'other' }];
  const failWith = (cause: Error) =>
    forEachNamespace('idle', lobbies, async (namespace_id) => {
      if (namespace_id === 'one') throw cause;
    });
  const [cause, another] = [new Error('the version cannot be read'), new Error('the lobby cannot be ended')];
  for (let step = 0; step < 3; step += 1) await failWith(cause);
  await failWith(another);
  await forEachNamespace('idle', lobbies, async () => {});
  await failWith(another);
  const event = { event: 'lobbies_step_failed', step: 'idle', namespace_id: 'one' };
  expect(reported).toEqual([cause, another, another].map((one) => ({ ...event, cause: one })));
});

test('lobbies loop: finds avoid a machine that is drained before its lobbies end', async () => {
  const [drained, other] = await openLobbies();
  const node_id = crypto.randomUUID();
  await matchmaker.database.queries.execute(sql`
    update servers set node_id = ${node_id}
    where server_id = (select server_id from lobbies where lobby_id = ${drained.lobby_id})`);
  const reasons_at_refresh: (string | undefined)[] = [];
  await matchmaker.reconcile({
    machines: { ...LONE_MACHINE, draining: () => [{ node_id, is_deadline_over: true }] },
    avoided: {
      ids: () => new Set(),
      async refresh() {
        reasons_at_refresh.push(await inspector.stopReason(drained.lobby_id));
      },
    },
  });
  expect(reasons_at_refresh[0]).toBeUndefined();
  expect(reasons_at_refresh).not.toBeEmpty();
  expect(await inspector.stopReason(drained.lobby_id)).toBe('machine_drained');
  await leave(other);
  await drained.request.outcome;
  await endAll();
});
