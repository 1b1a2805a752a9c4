import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { insertMinutes } from '../../../src/features/counters/store.ts';
import { selectLoad } from '../../../src/features/operator/store.ts';
import { RELEASE } from '../../../src/platform/version.ts';
import { makeGame } from '../../support/game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { makeFullGame, queueUp } from '../../support/lobbies/queue.ts';
import { machineIdOf } from '../../support/machines/machines.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const PATHS = [
  ...['', '/database', '/queue', '/log', '/samples', '/counters'].map((path) => `/cloud/service${path}`),
  '/metrics',
];
const MINUTE_MS = 60_000;
const LIMIT_OF_SERVERS = {
  code: 'LIMIT_NEARLY_REACHED',
  message: 'a limit of the service is nearly reached: servers',
  advice: expect.stringContaining('MUSTER_SERVERS_MAX'),
};

const muster = shareService();
const read = (path: string) => muster.api.ok('GET', path, { token: muster.administrator_token });

describe('the service, for its operator', () => {
  test.each(PATHS)('GET %s is refused to all but administrators', async (path) => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const guest = await makeGuest(muster.api, game);
    const answers = await Promise.all(
      [undefined, game.cloud_token, guest.token].map((one) => muster.api.get(path, one)),
    );
    expect(answers.map(outcomeOf)).toEqual([
      '401 API_UNAUTHORIZED',
      '401 CLAIMS_MISSING_ENTITLEMENT',
      '403 IDENTITY_NOT_ADMIN',
    ]);
  });

  test('says which process answers, and what it uses of its limits', async () => {
    const { process: self, limits } = await read('/cloud/service');
    const machine_id = await machineIdOf(muster.config.data_directory);
    expect(self).toMatchObject({ machine_id, version: expect.stringContaining(RELEASE) });
    const used = new Map<string, { used: number; max?: number }>(
      limits.map((one: { name: string }) => [one.name, one]),
    );
    expect(used.get('requests')?.used).toBeGreaterThanOrEqual(1);
    expect(used.get('sockets')).toEqual({ name: 'sockets', used: 0, max: muster.config.sockets.sockets_max } as never);
    expect(used.get('servers')?.max).toBe(muster.config.servers.servers_max);
    expect(used.get('gateway_requests')?.max).toBe(muster.config.gateway.requests_max);
    const descriptors = used.get('file_descriptors');
    expect(descriptors?.used).toBeWithin(10, descriptors?.max ?? 0);
    // A quarter of the descriptors, two for each.
    expect(used.get('gateway_sockets')?.max).toBe(Math.floor((descriptors?.max ?? 0) / 8));
  });

  test('says what it uses also while no descriptor is free', async () => {
    const sources = join(import.meta.dir, '../../../src');
    const script = `
      import { openSync } from 'node:fs';
      import { writeMetrics } from '${sources}/features/operator/metrics.ts';
      import { createOwnLimits } from '${sources}/features/operator/process-limits.ts';
      import { createSamples } from '${sources}/features/operator/samples.ts';
      const readLimits = createOwnLimits();
      const has_room = readLimits().some(({ name }) => name === 'memory_bytes');
      const failures = [];
      const events = { emit: ({ event }) => failures.push(event), count: () => 0 };
      const database = { queries: { execute: () => Promise.reject(new Error('it is away')) } };
      const samples = createSamples({ database, clock: { now: () => new Date() }, events, readLimits });
      try { for (;;) openSync('/dev/null', 'r'); } catch {}
      const limits = readLimits();
      const readings = { now: new Date(), version: '1', start_ts: '2026-01-01', limits, loops: [], requests: [], failed_requests: 0, seated: {}, refused: [] };
      const metrics = await writeMetrics(readings);
      samples.startTaking(new AbortController().signal);
      while (samples.list().length + failures.length === 0) await Bun.sleep(10);
      const [sample] = samples.list();
      process.stdout.write(JSON.stringify({ has_room, limits, metrics, sample, failures }), () => process.exit());`;
    const command = ['/bin/sh', '-c', 'ulimit -n 100; exec "$@"', 'sh', process.execPath, '-e', script];
    const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'inherit'] });
    const { has_room, limits, metrics, sample, failures } = await new Response(child.stdout).json();
    expect(has_room).toBe(true);
    expect([metrics.includes('process_cpu_seconds_total'), metrics.includes('process_resident_memory_bytes')]).toEqual([
      true,
      false,
    ]);
    expect([failures, sample?.requests, sample?.memory_bytes]).toEqual([[], 0, undefined]);
    const requests = { name: 'requests', used: expect.any(Number) };
    expect(limits).toEqual([requests, { name: 'file_descriptors', used: 100, max: 100 }]);
  });

  test('warns everyone of a limit that is nearly reached, by its name only', async () => {
    await using small = await openTestService({ MUSTER_SERVERS_MAX: '1' });
    expect((await small.api.ok('GET', '/health/ready')).warnings ?? []).not.toContainEqual(LIMIT_OF_SERVERS);
    await makeFullGame(small);
    expect((await small.api.ok('GET', '/health/ready')).warnings).toContainEqual(LIMIT_OF_SERVERS);
  }, 300_000);

  test('counts connections of others for a user without special rights, too', async () => {
    const { queries } = muster.database;
    const role = `r${crypto.randomUUID().replaceAll('-', '')}`;
    await queries.execute(sql.raw(`create role ${role}`));
    const seen = await muster.database.transact(async (tx) => {
      await tx.execute(sql.raw(`set local role ${role}`));
      return await selectLoad(tx);
    });
    await queries.execute(sql.raw(`drop role ${role}`));
    // The service and the test have one each at least.
    expect(seen.connections).toBeGreaterThanOrEqual(2);
  });

  test('counts polls that wait', async () => {
    const game = await makeControlledGame(muster);
    const path = `/cloud/games/${game.game_id}`;
    const { watch } = await muster.api.ok('GET', path, { token: game.cloud_token });
    const leaving = new AbortController();
    const polling = fetch(`${muster.config.public_url}${path}?watch_index=${watch.index}`, {
      headers: { authorization: `Bearer ${game.cloud_token}` },
      signal: leaving.signal,
    }).catch(() => undefined);
    const pollsOf = async () => {
      const { limits } = await read('/cloud/service');
      return limits.find(({ name }: { name: string }) => name === 'polls').used;
    };
    await waitFor(async () => (await pollsOf()) === 1, 'the poll to wait');
    leaving.abort();
    await polling;
    await waitFor(async () => (await pollsOf()) === 0, 'the poll to end');
  });

  test('lists its background work, with the last step of each loop', async () => {
    // While a step is under way, it is not known when the next one begins.
    const { loops } = await waitFor(async () => {
      const service = await read('/cloud/service');
      const queue = service.loops.find(({ name }: { name: string }) => name === 'queue');
      return queue?.next_step_ts !== undefined && service;
    }, 'a step of the queue to end');
    const names = loops.map(({ name }: { name: string }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['machines', 'servers', 'lobbies', 'queue', 'feed', 'process-samples']),
    );
    const queue = loops.find(({ name }: { name: string }) => name === 'queue');
    expect(queue).toMatchObject({ failures: 0, last_step_ms: expect.any(Number) });
    expect(Date.parse(queue.next_step_ts)).toBeGreaterThan(Date.parse(queue.last_step_ts));
  });

  test('describes its database: size, connections and the largest tables', async () => {
    const { database } = await read('/cloud/service/database');
    const [row] = await muster.database.queries.execute<{ version: string; connections_max: number }>(sql`
      select current_setting('server_version') as version, current_setting('max_connections')::int as connections_max`);
    expect(database).toMatchObject({ version: row?.version, is_standby: false, is_read_only: false, replicas: [] });
    expect(database.size_bytes).toBeGreaterThan(1_000_000);
    expect(database.connections).toBeWithin(1, database.connections_max);
    expect(database.connections_max).toBeLessThan(row?.connections_max ?? 0);
    expect(database.programs[0]).toMatchObject({ name: 'muster', connections: expect.any(Number) });
    const sizes = database.tables.map(({ size_bytes }: { size_bytes: number }) => size_bytes);
    expect(sizes).toHaveLength(10);
    expect(sizes).toEqual(sizes.toSorted((one: number, other: number) => other - one));
  });

  test('names the oldest open transaction while it is open', async () => {
    const stopped = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const transaction = muster.database.transact(async (tx) => {
      await tx.execute(sql`select 1`);
      begun.resolve();
      await stopped.promise;
    });
    await begun.promise;
    const { database } = await read('/cloud/service/database');
    stopped.resolve();
    await transaction;
    expect(database.oldest_transaction).toMatchObject({ program: 'muster', state: 'idle in transaction' });
  });

  test('counts the finds that wait, by namespace', async () => {
    expect(await read('/cloud/service/queue')).toEqual({ finds: 0, namespaces: [] });
    const game = await makeFullGame(muster);
    const waiters = [await queueUp(muster, game)];
    const since = Date.parse((await read('/cloud/service/queue')).namespaces[0].waiting_since_ts);
    expect(since).toBeWithin(muster.clock.now().getTime() - MINUTE_MS, muster.clock.now().getTime() + 1);
    muster.clock.advance(MINUTE_MS);
    waiters.push(await queueUp(muster, game));
    const { name_id } = (await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token })).game;
    const { game_id, namespace_id } = game;
    expect(await read('/cloud/service/queue')).toEqual({
      finds: 2,
      namespaces: [
        {
          game_id,
          game_name_id: name_id,
          namespace_id,
          namespace_name_id: 'prod',
          finds: 2,
          seats: 2,
          waiting_since_ts: new Date(since).toISOString(),
        },
      ],
    });
    // Then the other one has waited for longest.
    waiters[0]?.abort();
    const sinceOfFirst = async () => Date.parse((await read('/cloud/service/queue')).namespaces[0].waiting_since_ts);
    await waitFor(async () => (await sinceOfFirst()) >= since + MINUTE_MS, 'the first find to leave');
    for (const waiter of waiters) waiter.abort();
    await waitFor(async () => (await read('/cloud/service/queue')).finds === 0, 'the queue to be empty');
  });

  test('of several processes on one database, each answers for itself, and all for the database', async () => {
    // The other machine has no files of this one, so it could not start the server.
    const game = await makeFullGame(muster);
    await using other = await openTestService({}, { database_of: muster });
    const readThere = (path: string) => other.api.ok('GET', path, { token: muster.administrator_token });
    const [here, there] = [await read('/cloud/service'), await readThere('/cloud/service')];
    expect(there.process.machine_id).toBe(await machineIdOf(other.config.data_directory));
    expect(here.process.machine_id).toBe(await machineIdOf(muster.config.data_directory));
    const serversOf = ({ limits }: typeof here) => limits.find(({ name }: { name: string }) => name === 'servers').used;
    expect([serversOf(here) > 0, serversOf(there)]).toEqual([true, 0]);
    const waiter = await queueUp(muster, game);
    const queue = await read('/cloud/service/queue');
    expect(queue).toMatchObject({ finds: 1, namespaces: [{ namespace_id: game.namespace_id }] });
    expect(await readThere('/cloud/service/queue')).toEqual(queue);
    waiter.abort();
    await waitFor(async () => (await readThere('/cloud/service/queue')).finds === 0, 'the queue to be empty');
  }, 300_000);

  test('lists the latest events of its log, from a level on', async () => {
    await makeControlledGame(muster);
    const { process: self, events } = await read('/cloud/service/log');
    expect(self.machine_id).toBe(await machineIdOf(muster.config.data_directory));
    const numbers = events.map(({ number }: { number: number }) => number);
    expect(numbers).toEqual(numbers.toSorted((one: number, other: number) => one - other));
    const levelsOf = (list: { level: string }[]) => new Set(list.map(({ level }) => level));
    expect(levelsOf(events)).not.toContain('debug');
    const { queries } = muster.database;
    await queries.execute(sql`alter table minute_counters rename to lost_counters`);
    const failed = await muster.api.get('/cloud/service/counters', muster.administrator_token);
    await queries.execute(sql`alter table lost_counters rename to minute_counters`);
    expect(failed.status).toBe(500);
    const worse = await read('/cloud/service/log?level=error');
    expect(worse.events).toContainEqual(
      expect.objectContaining({
        event: 'request_failed',
        details: expect.objectContaining({ route: '/cloud/service/counters' }),
      }),
    );
    expect([...levelsOf(worse.events)]).toEqual(['error']);
    const refused = await muster.api.get('/cloud/service/log?level=debug', muster.administrator_token);
    expect(outcomeOf(refused)).toBe('400 API_BAD_QUERY_PARAMETER');
  });

  test('has a sample of the process from its start on', async () => {
    const { samples, step_ms } = await waitFor(async () => {
      const answer = await read('/cloud/service/samples');
      return answer.samples.length > 0 && answer;
    }, 'the first sample');
    expect(step_ms).toBe(15_000);
    const [sample] = samples;
    expect(sample.memory_bytes).toBeGreaterThan(10_000_000);
    expect(sample.span_ms).toBeGreaterThan(0);
    expect(sample.database_connections).toBeGreaterThan(0);
    expect(sample.cpu).toBeGreaterThanOrEqual(0);
  });

  test('adds up what all namespaces counted in each minute', async () => {
    // No minute begins, or is stored, during the test.
    muster.clock.advance(MINUTE_MS + 15_000 - (muster.clock.now().getTime() % MINUTE_MS));
    const start_ts = new Date((Math.floor(muster.clock.now().getTime() / MINUTE_MS) - 10) * MINUTE_MS);
    const one = { lobbies: 2, start_ts, counted_by: crypto.randomUUID(), find_times: {} };
    const games = await Promise.all([1, 2].map(() => makeGame(muster.api, muster.administrator_token)));
    const seated = { find: 3, join: 1, create: 1 };
    const rows = games.map(({ namespace_id }, index) => ({
      ...one,
      namespace_id,
      players: 5 + index,
      seated,
      refused: { A: 1, B: index },
    }));
    await insertMinutes(muster.database, rows);
    const readMinute = async () => {
      const { minutes } = await read('/cloud/service/counters');
      return minutes.find((each: { start_ts: string }) => each.start_ts === start_ts.toISOString());
    };
    const counted = { start_ts: start_ts.toISOString(), players: 11, lobbies: 4, seated: 10, refused: 3 };
    expect(await readMinute()).toEqual(counted);
    const others = rows.slice(0, 1).map((row) => ({ ...row, counted_by: crypto.randomUUID() }));
    await insertMinutes(muster.database, others);
    // One read is for all callers of a minute.
    expect(await readMinute()).toEqual(counted);
    muster.clock.advance(MINUTE_MS);
    expect(await readMinute()).toEqual({ ...counted, players: 16, lobbies: 6, seated: 15, refused: 4 });
  });
});
