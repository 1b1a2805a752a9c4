import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { copyServer } from '../../support/server-copies.ts';
import { serversOf, startedBy, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const TEST_TIMEOUT_MS = 300_000;
/** Servers of a namespace that may wait. */
const WAITING_MAX = 1_000;

/** Makes a game with a build that runs until it is ended. Returns the calls for its servers. */
async function makeTenant(muster: TestService) {
  const game = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, game);
  const body = await servers.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
  return {
    ...servers,
    game,
    create: async (): Promise<string> => (await servers.create(body)).body.server.id,
  };
}

type Tenant = Awaited<ReturnType<typeof makeTenant>>;
const createMany = async ({ create }: Tenant, count: number): Promise<string[]> => {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) ids.push(await create());
  return ids;
};
/** Returns which of these servers a machine has started, in the order of their start. */
const startedOf = (muster: TestService, ids: string[]) => startedBy(muster).filter((id) => ids.includes(id));

describe('quota: of four servers that a machine runs', () => {
  let muster: TestService;
  let greedy: Tenant;
  let ids: string[];
  beforeAll(async () => {
    muster = await openTestService({
      MUSTER_SERVERS_MAX: '4',
      MUSTER_REQUEST_TIMEOUT_MS: '4000',
      MUSTER_WATCH_HOLD_MS: '1000',
    });
    greedy = await makeTenant(muster);
    ids = await createMany(greedy, 6);
  }, TEST_TIMEOUT_MS);
  afterAll(() => muster[Symbol.asyncDispose](), TEST_TIMEOUT_MS);

  test(
    'one group gets three, and the operator and the log of the next server say why it waits',
    async () => {
      const waits = await waitFor(() => muster.events.find(({ event }) => event === 'server_waits'), 'the event');
      expect(waits).toMatchObject({ reason: 'group_quota', namespace_id: greedy.game.namespace_id });
      await waitFor(() => startedOf(muster, ids).length === 3, 'three to start');
      const waiting = ids.find((id) => !startedOf(muster, ids).includes(id)) ?? '';
      const [line] = await greedy.waitForLines(waiting, 1, 'std_err');
      expect(line).toStartWith(
        "[muster] this server does not run yet: each machine of this region runs the maximum of servers for your group's games",
      );
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'another group gets the fourth, although it asked last',
    async () => {
      const modest = await makeTenant(muster);
      const server_id = await modest.create();
      await modest.waitForStart(server_id);
      expect(startedOf(muster, ids)).toHaveLength(3);
      await modest.destroy(server_id, '?override_kill_timeout=0');
      await waitForEndEvent(muster, server_id);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'a find whose server gets no room in time gets an error of its own',
    async () => {
      const game = await makeControlledGame(muster, { game_modes: { default: {}, other: {}, third: {}, fourth: {} } });
      const occupant = await makeTenant(muster);
      // The last room on the machine.
      await occupant.waitForStart(await occupant.create());
      const { status, body } = await find(muster, game);
      expect([status, body.code]).toEqual([503, 'MATCHMAKER_LOBBY_NOT_READY']);
      expect(body.message).toContain('each machine of this region runs its maximum of servers (MUSTER_SERVERS_MAX)');
    },
    TEST_TIMEOUT_MS,
  );
});

test(
  'quota: a find of a group at its quota gets an error of its own',
  async () => {
    await using muster = await openTestService({
      MUSTER_SERVERS_PER_GROUP_MAX: '1',
      MUSTER_REQUEST_TIMEOUT_MS: '4000',
      MUSTER_WATCH_HOLD_MS: '1000',
    });
    const game = await makeControlledGame(muster, { game_modes: { default: {}, other: {} } });
    // On a busy machine the server of the first one may not be ready in time.
    await waitFor(async () => (await find(muster, game)).status === 200, 'a lobby that is ready in time');
    const { status, body } = await find(muster, game, { game_modes: ['other'] });
    expect([status, body.code]).toEqual([503, 'MATCHMAKER_LOBBY_NOT_READY']);
    expect(body.message).toContain("runs the maximum of servers for your group's games (MUSTER_SERVERS_PER_GROUP_MAX)");
  },
  TEST_TIMEOUT_MS,
);

test(
  'quota: of the servers that wait, a namespace has a maximum, also if several are created at once',
  async () => {
    await using muster = await openTestService({
      MUSTER_SERVERS_MAX: '1',
      MUSTER_REQUEST_TIMEOUT_MS: '4000',
      MUSTER_WATCH_HOLD_MS: '1000',
    });
    const game = await makeControlledGame(muster, { game_modes: { default: {}, other: {} } });
    expect((await find(muster, game)).status).toBe(200);
    const servers = serversOf(muster, game);
    const body = await servers.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
    const { server } = (await servers.create(body)).body;
    await using database = openDatabase(muster.database_address, 1);
    await copyServer(database.queries, server.id, WAITING_MAX - 2);
    const outcomes = (await Promise.all(Array.from({ length: 3 }, () => servers.create(body)))).map(outcomeOf);
    expect(outcomes.toSorted()).toEqual(['200', '400 SERVERS_TOO_MANY_WAITING', '400 SERVERS_TOO_MANY_WAITING']);
    // The maximum of lobbies limits their servers.
    const { status, body: answer } = await find(muster, game, { game_modes: ['other'] });
    expect([status, answer.code]).toEqual([503, 'MATCHMAKER_LOBBY_NOT_READY']);
    await database.queries.execute(sql`
      update servers set destroyed_at = now(), kill_at = now(), ended_at = now(), exit_code = 0 where node_id is null`);
    expect((await servers.create(body)).status).toBe(200);
  },
  TEST_TIMEOUT_MS,
);

describe('shares of room:', () => {
  test(
    'free room goes to the namespace with the fewest servers, not to the first one that asked',
    async () => {
      await using muster = await openTestService({ MUSTER_SERVERS_MAX: '2', MUSTER_SERVERS_PER_GROUP_MAX: '2' });
      const early = await makeTenant(muster);
      const ids = await createMany(early, 5);
      await waitFor(() => startedOf(muster, ids).length === 2, 'two to start');
      const late = await makeTenant(muster);
      const server_id = await late.create();
      const [first = ''] = startedOf(muster, ids);
      await early.destroy(first, '?override_kill_timeout=0');
      await late.waitForStart(server_id);
      expect(startedOf(muster, ids)).toHaveLength(2);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'two machines on one database each keep the quota, and start each server once',
    async () => {
      const settings = { MUSTER_SERVERS_PER_GROUP_MAX: '2' };
      await using one = await openTestService(settings);
      await using other = await openTestService(settings, { database_of: one });
      const greedy = await makeTenant(one);
      const modest = await makeTenant(one);
      // Each machine keeps its own uploads.
      const objectsOf = ({ config }: TestService) => join(config.data_directory, 'objects');
      await cp(objectsOf(one), objectsOf(other), { recursive: true });
      const ids = await createMany(greedy, 12);
      const server_ids = await createMany(modest, 2);
      await Promise.all(server_ids.map(modest.waitForStartOrEnd));
      const hasWaiting = ({ events }: TestService) => events.some(({ event }) => event === 'server_waits');
      await waitFor(() => hasWaiting(one) && hasWaiting(other), 'both to be at the quota');
      await waitFor(() => [one, other].every((machine) => startedOf(machine, ids).length === 2), 'both to start two');
      const started = [...startedOf(one, ids), ...startedOf(other, ids)];
      expect(new Set(started).size).toBe(4);
      for (const server_id of server_ids) expect((await modest.get(server_id)).started_at).toBeDefined();
    },
    TEST_TIMEOUT_MS,
  );
});
