import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { listServers, type TestGame } from '../../support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

/** Uses three tenths of a second of processor time in a child, then sleeps. */
const BUSY_MS = 300;
const BUSY_SOURCE = `
if (process.argv[2] === 'burn') {
  while (process.cpuUsage().user < ${BUSY_MS * 1_000}) {}
} else {
  ${READY_SOURCE}
  await Bun.spawn([process.execPath, import.meta.path, 'burn'], { env: process.env }).exited;
}`;

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeRoomGame(opened, { source: BUSY_SOURCE });
});
afterAll(() => opened[Symbol.asyncDispose]());

const usage = (query = '', token = opened.administrator_token) =>
  opened.api.get(`/cloud/groups/${game.group_id}/billing/usage${query}`, token);

test('usage: only members may read it, for a window of time', async () => {
  const { token } = await makeGuest(opened.api, game);
  expect(await usage('', token)).toMatchObject({ status: 404, body: { code: 'GROUP_NOT_FOUND' } });
  const refused = await opened.api.get(
    `/cloud/groups/${crypto.randomUUID()}/billing/usage`,
    opened.administrator_token,
  );
  expect(refused.body.code).toBe('GROUP_NOT_FOUND');
  expect((await usage('?query_start_ts=2&query_end_ts=1')).body).toMatchObject({
    code: 'VALIDATION_ERROR',
    metadata: { errors: [{ path: ['query_start_ts', 'too-late'] }] },
  });
  const future = opened.clock.now().getTime() + 3_600_000;
  const { code, message } = (await usage(`?query_start_ts=${future}`)).body;
  expect([code, message]).toEqual(['VALIDATION_ERROR', expect.stringContaining('query_end_ts, which is now')]);
  const NO_MOMENTS = [
    'yesterday',
    '-5',
    'May+3',
    '2020-01',
    '2020-01-01',
    '2020-01-01T00:00',
    '1e3',
    '2020-13-01T00:00:00Z',
    '2021-02-29T00:00:00Z',
  ];
  for (const text of [...NO_MOMENTS, '2020-01-01T00:00:00', '2020-01-01T00:00:00+01:00']) {
    expect([text, (await usage(`?query_start_ts=${text}`)).body.code]).toEqual([text, 'API_BAD_QUERY_PARAMETER']);
  }
  for (const text of [
    '2020-01-01t00:00:00z',
    '2020-01-01%2000:00:00.5Z',
    '2020-01-01T00:00:00%2B01:00',
    '1577836800000',
  ]) {
    expect([text, (await usage(`?query_start_ts=${text}&query_end_ts=2020-01-02T00:00:00Z`)).status]).toEqual([
      text,
      200,
    ]);
  }
  expect((await usage('?query_start_ts=0&query_end_ts=2020-01-01T00:00:00Z')).body).toEqual({
    games: [{ game_id: game.game_id, regions: [] }],
  });
});

test('usage: all games of a group are in it, also those beyond the first thousand', async () => {
  const { api, administrator_token: token } = opened;
  const body = { display_name: 'Many games' };
  const { group_id } = await api.ok('POST', '/group/groups', { token, body });
  await using database = openDatabase(opened.database_address, 1);
  await database.queries.execute(sql`
    insert into games (game_id, name_id, display_name, developer_group_id, create_ts)
    select gen_random_uuid(), 'many-' || number, 'Game', ${group_id}::uuid, now() from generate_series(1, 1001) as number`);
  const { games } = await api.ok('GET', `/cloud/groups/${group_id}/billing/usage`, { token });
  expect(new Set(games.map(({ game_id }: { game_id: string }) => game_id)).size).toBe(1_001);
});

test("usage: it is the processor time of a server's whole tree, by game and region", async () => {
  const body = { game_modes: ['default'] };
  await opened.api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body });
  const read = async (): Promise<number> => (await usage()).body.games[0].regions[0]?.uptime ?? 0;
  const used = await waitFor(
    async () => ((await read()) >= BUSY_MS ? await read() : undefined),
    'the whole work to be metered',
  );
  // Processor time does not depend on the load, and in another unit it would be a thousand times as much.
  expect(used).toBeLessThan(100 * BUSY_MS);
  const { games } = (await usage()).body;
  expect(games).toEqual([
    {
      game_id: game.game_id,
      regions: [{ region_id: expect.stringMatching(/^[0-9a-f-]{36}$/), uptime: expect.any(Number) }],
    },
  ]);
});

test('usage: a window has its exact share of each ten-minute step', async () => {
  const [server] = await listServers(opened, game);
  const { started_at } = server;
  const read = async (start: number, end: number): Promise<number> => {
    const { games } = (await usage(`?query_start_ts=${start}&query_end_ts=${end}`)).body;
    return games[0].regions[0]?.uptime ?? 0;
  };
  const now = opened.clock.now().getTime();
  // The last reading may be stored during the test, so the values are read again until they agree.
  await waitFor(async () => {
    const whole = await read(started_at, now);
    const middle = started_at + Math.floor((now - started_at) / 2);
    const [first, second] = [await read(started_at, middle), await read(middle, now)];
    const is_split = Math.abs(first + second - whole) <= 1;
    return whole >= BUSY_MS && is_split && (await read(started_at, now)) === whole;
  }, 'both halves to add up to the whole');
  expect(await read(0, started_at)).toBe(0);
  expect(await read(now + 600_000, now + 1_200_000)).toBe(0);
  // One core uses at most a millisecond in a millisecond, and the machine has a few.
  expect(await read(started_at + 100, started_at + 101)).toBeLessThan(50);
});
