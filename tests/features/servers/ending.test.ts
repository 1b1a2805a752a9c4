import { beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabaseAdmin } from '../../support/database/read-only.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** With three processes each. */
const SERVERS = 60;
/** More servers than are started at one time. */
const ENDING_SLOWLY = 70;
/** In processor time, which does not depend on the load. One server at a time took this much on the event loop. */
const WITHOUT_A_TURN_MS_MAX = 400;

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

test('ending: many servers at once all end and do not block the event loop', async () => {
  const body = await servers.bodyOf(await uploadShell(muster.api, game, '(setsid sleep 600 &); sleep 600 & wait'));
  const ids: string[] = [];
  for (let index = 0; index < SERVERS; index += 1) ids.push((await servers.create(body)).body.server.id);
  for (const id of ids) await servers.waitForStart(id);
  const longest = measureTurns();
  await muster.service.stopServers();
  for (const id of ids)
    expect(await waitForEndEvent(muster, id)).toMatchObject({ exit_signal: 'SIGTERM', failure: null });
  expect(longest.stop()).toBeLessThan(WITHOUT_A_TURN_MS_MAX);
  expect(ids.flatMap(findProcessesOf)).toEqual([]);
}, 300_000);

test('ending: the reason is written to the log once, also if the first attempt to record the end fails', async () => {
  const { database } = muster;
  const server_id = await servers.run('echo up; exec sleep 600');
  await servers.waitForLines(server_id, 1);
  // A sequence keeps its value when a transaction is rolled back.
  await database.queries.execute(sql.raw('create sequence ends_refused'));
  await database.queries.execute(
    sql.raw(`create function refuse_once() returns trigger language plpgsql as $$ begin
      if new.ended_at is not null and nextval('ends_refused') <= 1 then raise 'refused once'; end if; return new;
    end $$`),
  );
  await database.queries.execute(
    sql.raw('create trigger refuse_once before update on servers for each row execute function refuse_once()'),
  );
  for (const pid of findProcessesOf(server_id)) process.kill(pid, 'SIGKILL');
  const { failure } = await waitForEndEvent(muster, server_id);
  expect(muster.events).toContainEqual(
    expect.objectContaining({ event: 'server_step_failed', server_id, step: 'finish' }),
  );
  const lines = await servers.linesOf(server_id, 'std_err');
  expect(lines).toEqual([`[muster] ${failure}`]);
  await database.queries.execute(sql.raw('drop trigger refuse_once on servers'));
}, 300_000);

test('metering: processes that left the session of their server are counted', async () => {
  const { database } = muster;
  const burn = 'n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; times; exec sleep 600';
  const server_id = await servers.run(`setsid sh -c '${burn}' & exec sleep 600`);
  const [own = ''] = await servers.waitForLines(server_id, 2);
  const used_ms = Math.floor(1_000 * Number(/^0m([\d.]+)s/.exec(own)?.[1]));
  expect(used_ms).toBeGreaterThan(50);
  const metered = await waitFor(async () => {
    const [row] = await database.queries.execute<{ cpu_ms: string }>(
      sql`select cpu_ms from server_meters where server_id = ${server_id}`,
    );
    return row !== undefined && Number(row.cpu_ms) >= used_ms && Number(row.cpu_ms);
  }, 'the whole usage to be metered');
  // Processor time does not depend on the load, and in another unit it would be a thousand times as much.
  expect(metered).toBeLessThan(20 * used_ms);
}, 300_000);

test('ending: everything that a server wrote before its end is kept, in any number of pieces', async () => {
  const server_id = await servers.run('seq 1 400000');
  await waitForEndEvent(muster, server_id);
  expect((await servers.linesOf(server_id)).at(-1)).toBe('400000');
}, 300_000);

test('ending: servers that take long to end delay no start', async () => {
  const { database } = muster;
  const run = (statement: string) => database.queries.execute(sql.raw(statement));
  const body = await servers.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
  const other_game = await makeGame(muster.api, muster.administrator_token);
  const other = serversOf(muster, other_game);
  const other_body = await other.bodyOf(await uploadShell(muster.api, other_game, 'exec sleep 600'));
  const ids: string[] = [];
  for (let index = 0; index < ENDING_SLOWLY; index += 1) ids.push((await servers.create(body)).body.server.id);
  for (const id of ids) await servers.waitForStart(id);
  // The ends wait for the lock, up to the lock timeout of the database.
  await run(`create function wait_for_lock() returns trigger language plpgsql as $$ begin
    if new.ended_at is not null then perform pg_advisory_xact_lock(7); end if; return new;
  end $$`);
  await run('create trigger wait_for_lock before update on servers for each row execute function wait_for_lock()');
  const release = Promise.withResolvers<void>();
  const holding = database.transact(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(7)`);
    await release.promise;
  });
  await run(
    `update servers set destroyed_at = now(), kill_at = now() where server_id in (${ids.map((id) => `'${id}'`)})`,
  );
  await waitFor(async () => {
    const waiting = await run(
      `select from pg_locks join pg_database on pg_database.oid = database
        where datname = current_database() and locktype = 'advisory' and not granted`,
    );
    return waiting.length > 0;
  }, 'a round of ends to wait for the lock');
  await other.waitForStart((await other.create(other_body)).body.server.id);
  const failed = muster.events.filter((event) => event.event === 'server_step_failed' && ids.includes(event.server_id));
  expect(failed).toEqual([]);
  release.resolve();
  await holding;
  for (const id of ids) await waitForEndEvent(muster, id);
  await run('drop trigger wait_for_lock on servers');
}, 300_000);

// The last test, because the service renews its connections to the database for a second after it.
test('ending: stopping all servers of a machine waits until the database can be written again', async () => {
  await using operator = await openDatabaseAdmin(muster.database_address);
  const server_id = await servers.run('exec sleep 600');
  // One that still waits for a machine belongs to no machine yet.
  await servers.waitForStart(server_id);
  await operator.forbidWrites('database');
  const stopped = muster.service.stopServers();
  await waitFor(async () => (await muster.api.get('/health/ready')).status === 503, 'the service to notice');
  await operator.allowWrites('database');
  await stopped;
  expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: 'SIGTERM', failure: null });
}, 300_000);

/** Measures the longest processor time of this process between two turns of its event loop. */
function measureTurns(): { stop(): number } {
  let longest_ms = 0;
  let before = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(before);
    longest_ms = Math.max(longest_ms, (user + system) / 1_000);
    before = process.cpuUsage();
  }, 1);
  return {
    stop() {
      clearInterval(timer);
      return longest_ms;
    },
  };
}
