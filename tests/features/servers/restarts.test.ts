import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { destroyServer } from '../../../src/features/servers/destroy-store.ts';
import { setEnded } from '../../../src/features/servers/ends-store.ts';
import { endWithMachine } from '../../../src/features/servers/lost-machine.ts';
import { planRestart } from '../../../src/features/servers/restarts.ts';
import { assignServer, insertServer, selectServerById } from '../../../src/features/servers/store.ts';
import type { ServerRow } from '../../../src/features/servers/tables.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { signalProcess } from '../../../src/platform/system/processes.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { openRestartableService } from '../../support/restart.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** Times that an end is recorded by two processes while it is requested, in different orders. */
const ROUNDS = 60;

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

type Servers = ReturnType<typeof serversOf>;
const AGAIN = { restart: 'on_crash' };
const run = (script: string, lifecycle: object = AGAIN, more: object = {}) =>
  servers.run(script, { lifecycle, ...more });
/** Waits for the restart of a server, and returns its id. */
const restartOf = (server_id: string, { get }: Pick<Servers, 'get'> = servers): Promise<string> =>
  waitFor(async () => (await get(server_id)).restarted_as as string | undefined, 'the server to be restarted');

/** Kills a server without Muster. */
const killAll = (server_id: string) =>
  waitFor(() => {
    const pids = findProcessesOf(server_id);
    for (const pid of pids) signalProcess(pid, 'SIGKILL');
    return pids.length === 0;
  }, 'the server to be killed');

describe('servers: a restart is refused', () => {
  const REFUSALS: [string, object, string][] = [
    ['with an unknown policy', { restart: 'always' }, '400 API_BAD_BODY'],
    ['with a maximum of 0', { ...AGAIN, restarts_max: 0 }, '400 API_BAD_BODY'],
    ['with a maximum above 1,000', { ...AGAIN, restarts_max: 1_001 }, '400 API_BAD_BODY'],
    ['with a maximum and no policy', { restarts_max: 3 }, '400 SERVERS_SERVER_FAILED_TO_CREATE'],
    ['with a maximum and "never"', { restart: 'never', restarts_max: 3 }, '400 SERVERS_SERVER_FAILED_TO_CREATE'],
  ];
  test.each(REFUSALS)('%s', async (_, lifecycle, outcome) => {
    const body = await servers.bodyOf(await uploadShell(muster.api, game, 'exit 3'), { lifecycle });
    const answer = await servers.create(body);
    expect(outcomeOf(answer)).toBe(outcome);
    expect(answer.body.message).toContain('lifecycle.restart');
  });
});

describe('servers: a server with restart "on_crash"', () => {
  test('is followed by an equal server after a crash, linked both ways, and not before the pause', async () => {
    const more = {
      tags: { world: 'north' },
      runtime: { arguments: ['a', 'b c'], environment: { MODE: 'fast' } },
      network: { mode: 'host', ports: { game: { protocol: 'udp' }, web: { protocol: 'http' } } },
      resources: { cpu: 200, memory: 96 },
    };
    const script = 'echo "$MODE $PORT_game $@"; sleep 0.2; exit 3';
    const first_id = await run(script, { ...AGAIN, restarts_max: 2, kill_timeout: 1_234 }, more);
    const second_id = await restartOf(first_id);
    const first = await servers.get(first_id);
    const second = await servers.waitForStart(second_id);
    expect(first).toMatchObject({ lifecycle: { kill_timeout: 1_234, restart: 'on_crash', restarts_max: 2 } });
    expect(first.restart_of ?? first.restart_count ?? first.start_after).toBeUndefined();
    const { id: _first, created_at, started_at, destroyed_at, restarted_as, network, ...definition } = first;
    expect(second).toMatchObject({ ...definition, id: second_id, restart_of: first_id, restart_count: 1 });
    expect(Object.keys(second.network.ports)).toEqual(Object.keys(network.ports));
    expect(second.created_at).toBe(destroyed_at);
    expect(second.start_after).toBe(destroyed_at + 1_000);
    expect(second.started_at).toBeGreaterThanOrEqual(second.start_after);

    const third_id = await restartOf(second_id);
    await waitForEndEvent(muster, third_id, 30_000);
    const third = await servers.get(third_id);
    expect(third).toMatchObject({ restart_of: second_id, restart_count: 2 });
    expect(third.start_after - third.created_at).toBe(2_000);
    // It was the last one.
    expect(third.restarted_as).toBeUndefined();
    for (const server of [first, second, third]) {
      const { game: port } = (await servers.get(server.id)).network.ports;
      expect(await servers.linesOf(server.id)).toEqual([`fast ${port.internal_port} a b c`]);
      const ends = muster.events.filter((one) => one.event === 'server_ended' && one.server_id === server.id);
      expect(ends).toMatchObject([{ exit_code: 3, ...(server !== third && { restarted_as: expect.any(String) }) }]);
    }
    const path = `${servers.path}?include_destroyed=true&tags_json=${encodeURIComponent('{"world":"north"}')}`;
    const listed = (await muster.api.ok('GET', path, { token: game.cloud_token })).servers;
    expect(listed.map((server: { id: string }) => server.id)).toEqual([third_id, second_id, first_id]);
    expect(listed).toMatchObject([{ restart_of: second_id }, { restarted_as: third_id }, { restarted_as: second_id }]);
  }, 300_000);

  const OTHERS: [string, string, object][] = [
    ['ends well', 'exit 0', AGAIN],
    ['was created without it', 'exit 3', {}],
    ['was created with "never"', 'exit 3', { restart: 'never' }],
  ];
  test.each(OTHERS)('has no restart if it %s', async (_, script, lifecycle) => {
    const server_id = await run(script, lifecycle);
    await waitForEndEvent(muster, server_id);
    expect((await servers.get(server_id)).restarted_as).toBeUndefined();
  });

  test('has no restart if its end was requested, however it ends', async () => {
    const server_id = await run(`trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done`);
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 5 });
    expect((await servers.get(server_id)).restarted_as).toBeUndefined();
  });

  test('has no restart if it could not be started', async () => {
    const build = await uploadShell(muster.api, game, 'exit 3');
    const body = await servers.bodyOf(build, { lifecycle: AGAIN });
    await Bun.$`rm -rf ${muster.config.data_directory}/builds/${build} ${muster.config.data_directory}/objects`.quiet();
    const server_id = (await servers.create(body)).body.server.id;
    const { failure } = await waitForEndEvent(muster, server_id);
    expect(failure).not.toBeNull();
    expect((await servers.get(server_id)).restarted_as).toBeUndefined();
  });
});

test('servers: a clock that was set back by an hour does not lengthen the pause of a restart', async () => {
  const first_id = await run('exit 4', { ...AGAIN, restarts_max: 1 });
  const second_id = await restartOf(first_id);
  await muster.database.queries.execute(sql`
    update servers set start_after = start_after + interval '1 hour' where server_id = ${second_id}`);
  expect(await waitForEndEvent(muster, second_id)).toMatchObject({ exit_code: 4 });
});

describe('servers: ending a chain of restarts', () => {
  test('during a pause leaves no server, whichever of the chain is named', async () => {
    for (const named of ['first', 'waiting']) {
      const first_id = await run('exit 4');
      const waiting_id = await restartOf(first_id);
      // It is listed as one that has not started.
      const waiting = await servers.get(waiting_id);
      expect([waiting.started_at, waiting.destroyed_at]).toEqual([undefined, undefined]);
      expect(outcomeOf(await servers.destroy(named === 'first' ? first_id : waiting_id))).toBe('200');
      await waitForEndEvent(muster, waiting_id);
      muster.clock.advance(60_000);
      const ended = await servers.get(waiting_id);
      expect([ended.started_at, ended.restarted_as]).toEqual([undefined, undefined]);
      expect(findProcessesOf(waiting_id)).toEqual([]);
      // Repeating it is harmless.
      expect(outcomeOf(await servers.destroy(first_id))).toBe('200');
      expect(await servers.get(waiting_id)).toEqual(ended);
    }
  });

  test('by its first server ends the running one, and not through another environment', async () => {
    const script = `echo up; trap 'exit 0' TERM; while :; do sleep 0.01; done`;
    const first_id = await run(script);
    await servers.waitForLines(first_id, 1);
    await killAll(first_id);
    const second_id = await restartOf(first_id);
    await servers.waitForLines(second_id, 1);
    const elsewhere = serversOf(muster, { ...game, namespace_id: game.staging_id });
    expect(outcomeOf(await elsewhere.destroy(first_id))).toBe('404 SERVERS_SERVER_NOT_FOUND');
    expect((await servers.get(second_id)).destroyed_at).toBeUndefined();
    await servers.destroy(first_id);
    expect(await waitForEndEvent(muster, second_id)).toMatchObject({ exit_code: 0 });
  });
});

describe('servers: an end', () => {
  /** Inserts a server of a machine that the service does not run. */
  async function insertRunning(node_id: string): Promise<ServerRow> {
    const build_id = crypto.randomUUID();
    const datacenter_id = crypto.randomUUID();
    const waiting = waitingServer({ ...game, build_id, datacenter_id });
    const row = { ...waiting, restarts_max: 5, chain_id: waiting.server_id };
    await muster.database.transact(async (tx) => {
      await insertServer(tx, row);
      await assignServer(tx, row.server_id, { node_id, ports: {} });
    });
    return row;
  }
  const chainOf = async (first: ServerRow): Promise<ServerRow[]> => {
    const chain: ServerRow[] = [];
    for (let id: string | null = first.server_id; id !== null; ) {
      const row: ServerRow | undefined = await selectServerById(muster.database.queries, id);
      if (!row) throw new Error('a restart that was recorded exists');
      chain.push(row);
      id = row.restarted_as;
    }
    return chain;
  };

  test(`recorded by two processes while it is requested, ${ROUNDS} times, has one restart or none`, async () => {
    await using one = openDatabase(muster.database_address, 2);
    await using other = openDatabase(muster.database_address, 2);
    const now = new Date();
    const lengths = { 1: 0, 2: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const row = await insertRunning(crypto.randomUUID());
      const end = { ...row, exit_code: 3 };
      const record = ({ queries }: typeof one) => setEnded(queries, [{ ...end, restart: planRestart(end, now) }], now);
      const scope = { game_id: row.game_id, namespace_id: row.namespace_id };
      const request = () =>
        muster.database.transact((tx) =>
          destroyServer(tx, scope, row.server_id, { now, override_kill_timeout_ms: undefined }),
        );
      const begun = [() => record(one), () => record(other), request].map(async (call, index) => {
        await Bun.sleep((index + round) % 3 === 0 ? 0 : Math.random());
        return await call();
      });
      await Promise.all(begun);
      const chain = await chainOf(row);
      lengths[chain.length as 1 | 2] += 1;
      // The request holds, whatever came first.
      expect(chain.map(({ destroyed_at }) => destroyed_at === null)).toEqual(chain.map(() => false));
      expect(chain.at(-1)?.kill_at).not.toBeNull();
      const open = chain.filter(({ ended_at }) => ended_at === null);
      expect(open.length).toBe(chain.length - 1);
    }
    expect(lengths[1] + lengths[2]).toBe(ROUNDS);
    // Each order has been tried.
    expect(lengths[1]).toBeGreaterThan(0);
    expect(lengths[2]).toBeGreaterThan(0);
  }, 300_000);

  test('of a lost machine has a restart for another machine', async () => {
    const node_id = crypto.randomUUID();
    const rows = [await insertRunning(node_id), await insertRunning(node_id)];
    const now = new Date();
    const lost = { failure: 'its machine was lost', now };
    expect(await muster.database.transact((tx) => endWithMachine(tx, node_id, lost))).toBe(2);
    expect(await muster.database.transact((tx) => endWithMachine(tx, node_id, lost))).toBe(0);
    for (const row of rows) {
      const [first, second, ...more] = await chainOf(row);
      expect(more).toEqual([]);
      expect(first).toMatchObject({ has_lost_machine: true });
      expect(second).toMatchObject({ node_id: null, restart_of: row.server_id, chain_id: row.server_id });
    }
  });
});

test('servers: an end while Muster is stopped has one restart once Muster runs again', async () => {
  await using service = await openRestartableService();
  const own_game = await makeGame(service.api, service.administrator_token);
  const own = serversOf(service, own_game);
  const server_id = await own.run('echo up; exec sleep 600', { lifecycle: { ...AGAIN, restarts_max: 1 } });
  await own.waitForLines(server_id, 1);
  await service.close();
  await killAll(server_id);
  await service.open();
  const restart_id = await restartOf(server_id, own);
  await own.waitForLines(restart_id, 1);
  await service.close();
  await service.open();
  const restarted = await own.get(restart_id);
  expect(restarted).toMatchObject({ restart_of: server_id, restart_count: 1 });
  expect([restarted.destroyed_at, restarted.restarted_as]).toEqual([undefined, undefined]);
}, 300_000);
