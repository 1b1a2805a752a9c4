import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { identifyProcess, signalProcess } from '../../../src/platform/system/processes.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { openRestartableService, type RestartableService } from '../../support/restart.ts';
import { orderOf, PROCESS_RUNTIMES } from '../../support/runtimes/runtimes.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { waitFor } from '../../support/wait.ts';

/** Lines that a list of a log has at most. */
const LISTED_MAX = 256;
const LOST = 'the process was lost: the machine restarted, or another program ended it';
/** Counts until SIGTERM. */
const COUNTING = `trap 'echo asked; exit 5' TERM; n=0; while :; do n=$((n+1)); echo $n; sleep 0.01; done`;

let muster: RestartableService;
let database: Database;
let game: TestGame;
beforeAll(async () => {
  muster = await openRestartableService();
  database = openDatabase(muster.database_address, 2);
  game = await makeGame(muster.api, muster.administrator_token);
}, 300_000);
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await muster[Symbol.asyncDispose]();
}, 300_000);

/** Closes the service, does something, and opens it again. */
async function reopen(meanwhile: () => Promise<unknown> | unknown = () => {}): Promise<void> {
  await muster.close();
  try {
    await meanwhile();
  } finally {
    await muster.open();
  }
}

const adoptions = (server_id: string) =>
  muster.events.filter((event) => event.event === 'server_adopted' && event.server_id === server_id);

describe('a service that was stopped and started again', () => {
  test('finds its servers running, loses and repeats no line, and ends them on request', async () => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(COUNTING);
    await servers.waitForLines(server_id, 10);
    const before = await servers.get(server_id);
    const processes = findProcessesOf(server_id);
    let written = '';
    await reopen(async () => {
      const file = join(muster.config.data_directory, 'servers', server_id, 'std_out');
      const length = (await Bun.file(file).text()).length;
      written = await waitFor(async () => {
        const text = await Bun.file(file).text();
        return text.length > length + 20 && text;
      }, 'output while the service is stopped');
    });
    expect(await servers.get(server_id)).toEqual(before);
    expect(findProcessesOf(server_id).filter((pid) => processes.includes(pid)).length).toBeGreaterThanOrEqual(2);
    const lines = await servers.waitForLines(server_id, Math.min(written.split('\n').length, LISTED_MAX));
    // On a slow machine it has written more than a list has.
    const [first = 1] = lines.map(Number);
    if (lines.length < LISTED_MAX) expect(first).toBe(1);
    expect(lines).toEqual(lines.map((_, index) => String(first + index)));

    await servers.destroy(server_id);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 5, exit_signal: null, failure: null });
    const last = await servers.linesOf(server_id);
    expect(last.at(-1)).toBe('asked');
    expect(last.slice(0, -1).map(Number)).toEqual(last.slice(0, -1).map((_, index) => Number(last[0]) + index));
  }, 300_000);

  const ENDS = [
    ['exit 9', { exit_code: 9, exit_signal: null, failure: null }],
    ['kill -SEGV $$', { exit_code: null, exit_signal: 'SIGSEGV', failure: null }],
  ] as const;
  test.each(ENDS)('records that a server ended meanwhile by "%s"', async (last, end) => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(`echo up; until [ -e $HOME/end ]; do sleep 0.01; done; echo bye; ${last}`);
    await servers.waitForLines(server_id, 1);
    await reopen(async () => {
      await Bun.write(join(muster.config.data_directory, 'servers', server_id, 'work/end'), '');
      await waitFor(() => findProcessesOf(server_id).length === 0, 'the server to end');
    });
    expect(await waitForEndEvent(muster, server_id)).toMatchObject(end);
    expect(await servers.linesOf(server_id)).toEqual(['up', 'bye']);
    expect(await servers.get(server_id)).toMatchObject({ destroyed_at: expect.any(Number) });
    expect(existsSync(join(muster.config.data_directory, 'servers', server_id))).toBe(false);
  });

  test('adopts a server whose start it could not record', async () => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(COUNTING);
    await servers.waitForStart(server_id);
    const [shell = 0] = findProcessesOf(server_id);
    await reopen(() => database.queries.execute(sql`update servers set process = null where server_id = ${server_id}`));
    await waitFor(() => adoptions(server_id).length > 0, 'the server to be adopted');
    expect(adoptions(server_id)).toMatchObject([{ event: 'server_adopted', server_id, identity: { pid: shell } }]);
    expect(findProcessesOf(server_id)).toContain(shell);
    await servers.destroy(server_id);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 5 });
  }, 300_000);

  test('sends SIGTERM again to a server that was ending, and kills it after its timeout', async () => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(`trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done`);
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    await servers.waitForLines(server_id, 2);
    await reopen();
    expect(await servers.waitForLines(server_id, 3)).toEqual(['up', 'asked', 'asked']);
    muster.clock.advance(30_000);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({
      exit_code: null,
      exit_signal: 'SIGKILL',
      failure: null,
    });
  }, 300_000);

  test('gives up a server from before a reboot, and leaves the process with the same pid alone', async () => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run('echo up; exec sleep 600');
    await servers.waitForLines(server_id, 1);
    await using stranger = Bun.spawn(['sleep', '600'], { detached: true });
    await reopen(async () => {
      for (const pid of findProcessesOf(server_id)) signalProcess(pid, 'SIGKILL');
      const other = JSON.stringify({ pid: stranger.pid, boot_id: crypto.randomUUID() });
      await database.queries.execute(sql`
        update servers set process = process || ${other}::jsonb where server_id = ${server_id}`);
    });
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({
      exit_code: null,
      exit_signal: null,
      failure: LOST,
    });
    expect(await servers.linesOf(server_id)).toEqual(['up']);
    expect(await servers.linesOf(server_id, 'std_err')).toEqual([`[muster] ${LOST}`]);
    expect((await servers.get(server_id)).destroyed_at).toBeNumber();
    expect(identifyProcess(stranger.pid)).toBeDefined();
  }, 300_000);

  test('records a server that was ending before a reboot as killed, and not as crashed', async () => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(`trap '' TERM; echo up; while :; do sleep 0.01; done`);
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    await reopen(async () => {
      for (const pid of findProcessesOf(server_id)) signalProcess(pid, 'SIGKILL');
      const reboot = JSON.stringify({ boot_id: crypto.randomUUID() });
      await database.queries.execute(sql`
        update servers set process = process || ${reboot}::jsonb where server_id = ${server_id}`);
    });
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({
      exit_code: null,
      exit_signal: 'SIGKILL',
      failure: null,
    });
    expect(await servers.linesOf(server_id, 'std_err')).toEqual([]);
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/crashes`;
    const { crashes } = await muster.api.ok('GET', path, { token: game.cloud_token });
    expect(crashes).not.toContainEqual(expect.objectContaining({ last_server_id: server_id }));
  }, 300_000);

  test('keeps the ports of running servers, so no other server gets them', async () => {
    const servers = serversOf(muster, game);
    const network = { ports: { game: { protocol: 'udp' } } };
    const first = await servers.run('exec sleep 600', { network });
    const server = await servers.waitForStart(first);
    await reopen();
    const held = await database.queries.execute(sql`
      select port from server_ports where server_id = ${first} and release_ts is null`);
    expect([...held]).toEqual([{ port: server.network.ports.game.public_port }]);
    await servers.destroy(first, '?override_kill_timeout=0');
    await waitForEndEvent(muster, first);
  }, 300_000);

  test('removes processes and files of servers that are not in the database', async () => {
    const [{ open }] = PROCESS_RUNTIMES;
    const order = await orderOf(muster.config.data_directory, '(setsid sleep 600 &); exec sleep 600');
    const { server_id } = order;
    await reopen(async () => {
      await (await open(muster.config.data_directory)).start(order);
      await waitFor(() => findProcessesOf(server_id).length === 3, 'the processes to start');
    });
    await waitFor(
      () => muster.events.some((event) => event.event === 'server_leftover_removed' && event.server_id === server_id),
      'the processes to be removed',
    );
    expect(findProcessesOf(server_id)).toEqual([]);
    expect(existsSync(join(muster.config.data_directory, 'servers', server_id))).toBe(false);
  }, 300_000);
});
