import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { openRestartableService, type RestartableService } from '../../support/restart.ts';
import { serversOf, startedBy, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { waitFor } from '../../support/wait.ts';

describe('stopping all servers of a machine with room for one', () => {
  let muster: RestartableService;
  let servers: ReturnType<typeof serversOf>;
  let body: object;
  beforeAll(async () => {
    muster = await openRestartableService({ MUSTER_SERVERS_MAX: '1' });
    const game = await makeGame(muster.api, muster.administrator_token);
    servers = serversOf(muster, game);
    body = await servers.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
  }, 300_000);
  afterAll(() => muster[Symbol.asyncDispose](), 300_000);

  const create = async (): Promise<string> => (await servers.create(body)).body.server.id;

  test('ends those that wait for it, none of which starts', async () => {
    const running = await create();
    await servers.waitForStart(running);
    const waiting = await Promise.all([create(), create()]);
    await muster.service().stopTakingServers();
    await muster.service().stopServers();
    for (const id of [running, ...waiting]) {
      await waitForEndEvent(muster, id);
      expect((await servers.get(id)).destroyed_at).toBeDefined();
      expect(findProcessesOf(id)).toEqual([]);
    }
    expect(startedBy(muster)).toEqual([running]);
  }, 300_000);

  test('lets no server start that is created after it, neither before the service closes nor at its next start', async () => {
    const late = await create();
    await muster.close();
    expect(startedBy(muster)).not.toContain(late);
    await muster.open();
    await waitFor(async () => (await servers.get(late)).destroyed_at !== undefined, 'the late server to have ended');
    const next = await create();
    await servers.waitForStart(next);
    expect(startedBy(muster)).toEqual([next]);
  }, 300_000);

  test('is not part of closing the service: servers that wait are left to its next start', async () => {
    const waiting = await create();
    await muster.close();
    await muster.open();
    expect((await servers.get(waiting)).destroyed_at).toBeUndefined();
    await muster.service().stopServers();
    await waitForEndEvent(muster, waiting);
  }, 300_000);

  test('ends all that wait for it, however many they are', async () => {
    await muster.service().stopTakingServers();
    const waiting = await create();
    await using database = openDatabase(muster.database_address, 1);
    // Several statements, because each has a limit of time.
    for (let added = 0; added < 12_500; added += 2_500) {
      await database.queries.execute(sql`
        insert into servers
        select (jsonb_populate_record(
          servers, jsonb_build_object('server_id', gen_random_uuid(), 'node_id', null, 'tags', '{"is": "copy"}'::jsonb)
        )).*
        from servers cross join generate_series(1, 2500) where server_id = ${waiting}`);
    }
    const is_copy = sql`tags @> '{"is": "copy"}'`;
    // It waits for their ends for a few seconds only.
    await muster
      .service()
      .stopServers()
      .catch(() => {});
    const left = await database.queries.execute(sql`select from servers where ${is_copy} and destroyed_at is null`);
    expect(left).toHaveLength(0);
    await database.queries.execute(sql`delete from servers where ${is_copy}`);
  }, 300_000);
});
