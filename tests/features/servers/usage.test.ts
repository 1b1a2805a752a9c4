import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { sumTraffic } from '../../../src/features/servers/runtimes/container/container-traffic.ts';
import type { UsageReading } from '../../../src/features/servers/runtimes/runtime.ts';
import { selectServerById } from '../../../src/features/servers/store.ts';
import { minuteOf } from '../../../src/features/servers/tables.ts';
import { startMetering } from '../../../src/features/servers/usage/metering.ts';
import { createUsageSamples } from '../../../src/features/servers/usage/usage-samples.ts';
import {
  deleteSamplesBefore,
  insertSamples,
  selectSamples,
} from '../../../src/features/servers/usage/usage-samples-store.ts';
import { addReadings } from '../../../src/features/servers/usage/usage-store.ts';
import type { Queries } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';
import { openSocket } from '../../support/watch/socket.ts';

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

describe('samples of what a server used:', () => {
  const timeOf = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
  const FIRST = minuteOf(timeOf(0));
  const readingsOf = (reading: UsageReading) => new Map([['a', reading]]);
  const none = { metered_before: new Set<string>() };

  test('a sample has the growth of a minute and the most memory', () => {
    const samples = createUsageSamples();
    const network = (bytes: number) => ({ received_bytes: bytes, sent_bytes: 2 * bytes });
    expect(
      samples.add(readingsOf({ cpu_ms: 10, memory_bytes: 5, ...network(1) }), { now: timeOf(2), ...none }),
    ).toEqual([]);
    expect(
      samples.add(readingsOf({ cpu_ms: 20, memory_bytes: 9, ...network(2) }), { now: timeOf(4), ...none }),
    ).toEqual([]);
    const first = samples.add(readingsOf({ cpu_ms: 40, memory_bytes: 7, ...network(5) }), { now: timeOf(60), ...none });
    expect(first).toEqual([
      { server_id: 'a', minute: FIRST, cpu_ms: 40, memory_bytes: 9, received_bytes: 5, sent_bytes: 10 },
    ]);
    const second = samples.add(readingsOf({ cpu_ms: 70, memory_bytes: 7, ...network(6) }), {
      now: timeOf(121),
      ...none,
    });
    expect(second).toEqual([
      { server_id: 'a', minute: FIRST + 1, cpu_ms: 30, memory_bytes: 7, received_bytes: 1, sent_bytes: 2 },
    ]);
  });

  test('the last minute of a server that ended is a sample too', () => {
    const samples = createUsageSamples();
    samples.add(readingsOf({ cpu_ms: 10 }), { now: timeOf(2), ...none });
    expect(samples.add(new Map(), { now: timeOf(4), ...none })).toEqual([]);
    expect(samples.add(new Map(), { now: timeOf(60), ...none })).toEqual([
      { server_id: 'a', minute: FIRST, cpu_ms: 10, memory_bytes: null, received_bytes: null, sent_bytes: null },
    ]);
    expect(samples.add(new Map(), { now: timeOf(62), ...none })).toEqual([]);
  });

  test('a reading that is missing within a minute leaves it one sample', () => {
    const samples = createUsageSamples();
    samples.add(readingsOf({ cpu_ms: 10 }), { now: timeOf(2), ...none });
    expect(samples.add(new Map(), { now: timeOf(4), ...none })).toEqual([]);
    expect(samples.add(readingsOf({ cpu_ms: 30 }), { now: timeOf(6), ...none })).toEqual([]);
    expect(samples.add(readingsOf({ cpu_ms: 40 }), { now: timeOf(60), ...none })).toMatchObject([
      { minute: FIRST, cpu_ms: 40 },
    ]);
  });

  test('what a server used in minutes without a reading is in no sample', () => {
    const samples = createUsageSamples();
    samples.add(readingsOf({ cpu_ms: 10 }), { now: timeOf(2), ...none });
    expect(samples.add(readingsOf({ cpu_ms: 600_000 }), { now: timeOf(601), ...none })).toMatchObject([
      { minute: FIRST, cpu_ms: 10 },
    ]);
    expect(samples.add(readingsOf({ cpu_ms: 600_020 }), { now: timeOf(660), ...none })).toMatchObject([
      { minute: FIRST + 10, cpu_ms: 20 },
    ]);
  });

  test('what a server used before the service was started again does not count', () => {
    const samples = createUsageSamples();
    samples.add(readingsOf({ cpu_ms: 1_000 }), { now: timeOf(2), metered_before: new Set(['a']) });
    expect(samples.add(readingsOf({ cpu_ms: 1_005 }), { now: timeOf(60), ...none })).toMatchObject([{ cpu_ms: 5 }]);
  });

  test('the traffic of all interfaces but loopback is summed', () => {
    const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
  eth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0
  eth1:3 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0
`;
    expect(sumTraffic(text)).toEqual({ received_bytes: 13, sent_bytes: 24 });
  });
});

test('usage: samples are stored once, in order, and a day of them takes little space', async () => {
  const server_id = await servers.run('exit 0');
  await waitForEndEvent(muster, server_id);
  const { queries } = muster.database;
  // The service stores a sample of the server in the current minute.
  const end = minuteOf(muster.clock.now()) - 60;
  const DAY_MINUTES = 24 * 60;
  const sampleOf = (minute: number) => {
    const used = { cpu_ms: minute % 60_000, memory_bytes: 1_048_576, received_bytes: null, sent_bytes: 2 ** 40 };
    return { server_id, minute, ...used };
  };
  const minutes = Array.from({ length: DAY_MINUTES }, (_, index) => end - DAY_MINUTES + 1 + index);
  // After the database was unreachable, several minutes of a server are stored together.
  await insertSamples(queries, minutes.slice(0, 90).map(sampleOf));
  for (const minute of minutes.slice(90)) await insertSamples(queries, [sampleOf(minute)]);
  await insertSamples(queries, [sampleOf(end)]);
  const stored = (await selectSamples(queries, server_id, 0)).filter(({ sent_bytes }) => sent_bytes !== null);
  expect(stored).toEqual(minutes.map(sampleOf));
  expect(
    (await selectSamples(queries, server_id, end - 1)).filter(({ sent_bytes }) => sent_bytes !== null),
  ).toHaveLength(2);
  const [row] = await queries.execute<{ bytes: number }>(
    sql`select sum(pg_column_size(one))::int as bytes from server_samples as one where server_id = ${server_id}`,
  );
  expect(row?.bytes).toBeLessThan(40 * 1_024);
  await deleteSamplesBefore(queries, new Date(muster.clock.now().getTime() + 2 * 3_600_000));
  expect(await selectSamples(queries, server_id, 0)).toEqual([]);
}, 300_000);

test('usage: two samples of one minute do not keep those of others from being stored', async () => {
  const ids = [await servers.run('exit 0'), await servers.run('exit 0')] as const;
  for (const server_id of ids) await waitForEndEvent(muster, server_id);
  const minute = minuteOf(muster.clock.now()) - 60;
  const used = { memory_bytes: null, received_bytes: null, sent_bytes: null };
  const of_one = [1, 2].map((cpu_ms) => ({ server_id: ids[0], minute, cpu_ms, ...used }));
  const of_other = { server_id: ids[1], minute, cpu_ms: 3, ...used };
  await insertSamples(muster.database.queries, [...of_one, of_other]);
  const [first] = await selectSamples(muster.database.queries, ids[0], minute);
  const [other] = await selectSamples(muster.database.queries, ids[1], minute);
  expect([first?.cpu_ms, other?.cpu_ms]).toEqual([1, 3]);
}, 300_000);

test('usage: each minute has its own sample, also while the database does not answer', async () => {
  const server_id = await servers.run('exec sleep 600');
  await servers.waitForStart(server_id);
  const row = await selectServerById(muster.database.queries, server_id);
  if (!row) throw new Error('the server has a row');
  let is_away = false;
  const queries = new Proxy(muster.database.queries, {
    get(target, key) {
      if (is_away) throw new Error('the database is away');
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  let cpu_ms = 0;
  let now = new Date(muster.clock.now().getTime() + 3_600_000);
  const first = minuteOf(now);
  let readings = 0;
  const aborting = new AbortController();
  const loops = startMetering(
    {
      database: { ...muster.database, queries },
      clock: { ...muster.clock, now: () => now },
      events: { emit() {} },
      async readUsage() {
        readings += 1;
        return new Map([[server_id, { cpu_ms }]]);
      },
      listServers: () => [row],
    },
    aborting.signal,
  );
  const [metering] = loops;
  const readAgain = async () => {
    const before = readings;
    await waitFor(() => {
      metering?.wake();
      return readings > before;
    }, 'a reading');
  };
  await readAgain();
  for (let minute = 1; minute <= 5; minute += 1) {
    is_away = minute < 5;
    cpu_ms += 1_000;
    now = new Date(now.getTime() + 60_000);
    await readAgain();
  }
  const stored = await waitFor(async () => {
    const samples = await selectSamples(muster.database.queries, server_id, first);
    return samples.length >= 5 && samples;
  }, 'the samples');
  aborting.abort();
  await Promise.all(loops.map(({ stopped }) => stopped));
  expect(stored.map(({ minute, cpu_ms: used }) => [minute - first, used])).toEqual(
    [0, 1, 2, 3, 4].map((minute) => [minute, 1_000]),
  );
  await servers.destroy(server_id);
}, 300_000);

test.each([
  { before: 'no reading', first_ms: 0 },
  { before: 'an earlier reading', first_ms: 1_000 },
])('usage: two readings at once after $before are counted once', async ({ first_ms }) => {
  const server_id = await servers.run('exit 0');
  await waitForEndEvent(muster, server_id);
  const { database } = muster;
  const now = new Date();
  const add = (queries: Queries, cpu_ms: number) =>
    addReadings(queries, [{ server_id, cpu_ms }], { now, previous_read_ts: undefined, interval_start: now });
  await database.queries.execute(sql`delete from server_meters where server_id = ${server_id}`);
  await database.queries.execute(sql`delete from server_usage where server_id = ${server_id}`);
  if (first_ms > 0) await add(database.queries, first_ms);
  // The answer to a commit is late, so the process reads and stores again.
  const { repeating } = await database.transact(async (tx) => {
    await add(tx, 5_000);
    const repeated = add(database.queries, 5_200);
    await waitFor(async () => {
      const waiting = await database.queries.execute(sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%server_meters%'`);
      return waiting.length > 0;
    }, 'the second reading to wait');
    return { repeating: repeated };
  });
  await repeating;
  await add(database.queries, 5_300);
  const [stored] = await database.queries.execute<{ meter: number; usage: number }>(sql`
    select (select cpu_ms::int from server_meters where server_id = ${server_id}) as meter,
      (select sum(cpu_ms)::int from server_usage where server_id = ${server_id}) as usage`);
  expect(stored).toEqual({ meter: 5_300, usage: 5_300 });
});

test('usage: a sample that the database cannot hold is stored as the most that it can, with those of others', async () => {
  const ids = [await servers.run('exit 0'), await servers.run('exit 0')] as const;
  for (const server_id of ids) await waitForEndEvent(muster, server_id);
  const minute = minuteOf(muster.clock.now()) - 60;
  const traffic = { received_bytes: null, sent_bytes: null };
  const sampleOf = (server_id: string, used: number) => ({
    server_id,
    minute,
    cpu_ms: used,
    memory_bytes: used * 1_024,
    ...traffic,
  });
  await insertSamples(muster.database.queries, [sampleOf(ids[0], 2 ** 40), sampleOf(ids[1], 5)]);
  for (const [server_id, most] of [[ids[0], 2 ** 31 - 1] as const, [ids[1], 5] as const]) {
    const stored = await selectSamples(muster.database.queries, server_id, minute);
    expect(stored[0]).toEqual(sampleOf(server_id, most));
  }
}, 300_000);

describe('the usage of a server', () => {
  test('has each minute beside the resources, in a GET, a poll and a socket', async () => {
    const server_id = await servers.run('while :; do :; done');
    await servers.waitForStart(server_id);
    const path = `${servers.path}/${server_id}/usage`;
    const get = async () => await muster.api.ok('GET', path, { token: game.service_token });
    using socket = openSocket(muster.config.public_url, { token: game.cloud_token });
    const key = await socket.subscribe('a', path);
    expect((await socket.body(key)).samples).toEqual([]);
    // The sample of a minute is stored with the first reading after it, which the clock of the test brings near.
    const body = await waitFor(async () => {
      muster.clock.advance(20_000);
      await Bun.sleep(500);
      const usage = await get();
      return usage.samples.some(({ cpu }: { cpu: number }) => cpu > 0) ? usage : undefined;
    }, 'a sample');
    const { resources } = await servers.get(server_id);
    expect(body.resources).toEqual(resources);
    const [sample] = body.samples;
    expect(new Date(sample.ts).getSeconds()).toBe(0);
    expect(sample.memory).toBeGreaterThan(0);
    expect((await socket.body(key)).samples[0]).toEqual(sample);
    const next = muster.api.ok('GET', `${path}?watch_index=${body.watch.index}`, { token: game.cloud_token });
    await servers.destroy(server_id, '?override_kill_timeout=0');
    for (const { ts } of (await next).samples)
      expect(Date.parse(ts)).toBeGreaterThan(Date.parse(body.samples.at(-1).ts));
  }, 300_000);

  test('is refused for a server of another game', async () => {
    const server_id = await servers.run('exit 0');
    const other = await makeGame(muster.api, muster.administrator_token);
    const path = `${serversOf(muster, other).path}/${server_id}/usage`;
    expect(outcomeOf(await muster.api.get(path, other.cloud_token))).toBe('404 SERVERS_SERVER_NOT_FOUND');
  });
});
