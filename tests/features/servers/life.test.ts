import { beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

const DEAF = `trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done`;
const folder = (server_id: string) => join(muster.config.data_directory, 'servers', server_id);

test('servers: one index has one state, also while a machine takes and starts the server', async () => {
  const build = await uploadShell(muster.api, game, 'exec sleep 1000');
  const body = await servers.bodyOf(build, {
    network: { ports: { game: { protocol: 'udp', routing: { host: {} } } } },
  });
  for (let round = 0; round < 5; round += 1) {
    const { id } = (await servers.create(body)).body.server;
    const bodies = new Map<string, string>();
    await waitFor(async () => {
      const readServer = () => muster.api.ok('GET', `${servers.path}/${id}`, { token: game.cloud_token });
      const { watch, server } = await readServer();
      const known = bodies.get(watch.index) ?? JSON.stringify(server);
      // A body may be newer than its index; then the next index differs.
      if (known !== JSON.stringify(server)) expect((await readServer()).watch.index).not.toBe(watch.index);
      bodies.set(watch.index, known);
      return server.network.ports.game.public_port !== undefined;
    }, 'the server to have its port');
    await servers.destroy(id, '?override_kill_timeout=0');
  }
});

describe('destroying a server', () => {
  const QUERIES = ['-1', '7200000', '1.5', 'soon', ''];
  test.each(QUERIES)('is refused with the kill timeout "%s"', async (time) => {
    const answer = await servers.destroy(crypto.randomUUID(), `?override_kill_timeout=${time}`);
    expect(outcomeOf(answer)).toBe('400 API_BAD_QUERY_PARAMETER');
    expect(answer.body.message).toContain('"override_kill_timeout"');
  });

  test('is refused if it is missing, or of another environment', async () => {
    expect(outcomeOf(await servers.destroy(crypto.randomUUID()))).toBe('404 SERVERS_SERVER_NOT_FOUND');
    const server_id = await servers.run(DEAF);
    const other = await makeGame(muster.api, muster.administrator_token);
    for (const place of [other, { ...game, namespace_id: game.staging_id }]) {
      const elsewhere = serversOf(muster, place);
      expect(outcomeOf(await elsewhere.destroy(server_id))).toBe('404 SERVERS_SERVER_NOT_FOUND');
      expect(outcomeOf(await elsewhere.log(server_id))).toBe('404 SERVERS_SERVER_NOT_FOUND');
      const answer = await muster.api.get(`${elsewhere.path}/${server_id}`, place.cloud_token);
      expect(outcomeOf(answer)).toBe('404 SERVERS_SERVER_NOT_FOUND');
    }
    expect((await servers.waitForStart(server_id)).destroyed_at).toBeUndefined();
    await servers.destroy(server_id, '?override_kill_timeout=0');
  });

  test('sends SIGTERM, waits for its end, and keeps nothing of it but its log', async () => {
    const server_id = await servers.run(
      `trap 'echo bye; exit 3' TERM; (setsid sleep 600 &); echo up; while :; do sleep 0.01; done`,
    );
    await servers.waitForLines(server_id, 1);
    const running = await servers.get(server_id);
    const answer = await servers.destroy(server_id);
    expect(answer.body).toEqual({});
    const { destroyed_at, ...rest } = await servers.get(server_id);
    expect(rest).toEqual(running);
    expect(destroyed_at).toBeGreaterThanOrEqual(running.started_at);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 3, exit_signal: null, failure: null });
    expect(findProcessesOf(server_id)).toEqual([]);
    expect(existsSync(folder(server_id))).toBe(false);
    expect(await servers.linesOf(server_id)).toEqual(['up', 'bye']);
    expect(await servers.get(server_id)).toEqual({ ...running, destroyed_at });
  });

  test.each(['TERM', 'KILL', 'SEGV'])('adds nothing to its log if SIG%s ends its program', async (signal) => {
    const server_id = await servers.run(`echo problem >&2; kill -${signal} $$`);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: `SIG${signal}` });
    const lines = await servers.linesOf(server_id, 'std_err');
    expect(lines.filter((line) => !line.startsWith('[muster]'))).toEqual(['problem']);
  });

  test('sends SIGKILL after the kill timeout, and not before', async () => {
    const server_id = await servers.run(DEAF, { lifecycle: { kill_timeout: 60_000 } });
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    expect(await servers.waitForLines(server_id, 2)).toEqual(['up', 'asked']);
    muster.clock.advance(50_000);
    // Another server ends in between, so the reconcile loop has seen this one again.
    await waitForEndEvent(muster, await servers.run('exit 0'));
    expect(findProcessesOf(server_id)).not.toEqual([]);
    muster.clock.advance(10_000);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({
      exit_code: null,
      exit_signal: 'SIGKILL',
      failure: null,
    });
    // SIGTERM came once, however often the loop has seen it.
    expect(await servers.linesOf(server_id)).toEqual(['up', 'asked']);
  });

  test('sends SIGKILL at once with a kill timeout of 0', async () => {
    const server_id = await servers.run(DEAF, { lifecycle: { kill_timeout: 0 } });
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: 'SIGKILL' });
    expect(await servers.linesOf(server_id)).toEqual(['up']);
  });

  test('is done once: repeating it may shorten the remaining time, and changes nothing else', async () => {
    const server_id = await servers.run(DEAF);
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id, '?override_kill_timeout=7199999');
    const { destroyed_at } = await servers.get(server_id);
    await servers.waitForLines(server_id, 2);
    expect((await servers.destroy(server_id)).body).toEqual({});
    muster.clock.advance(60_000);
    expect((await servers.destroy(server_id, '?override_kill_timeout=30000')).body).toEqual({});
    expect((await servers.destroy(server_id, '?override_kill_timeout=7199999')).body).toEqual({});
    await waitForEndEvent(muster, await servers.run('exit 0'));
    expect(findProcessesOf(server_id)).not.toEqual([]);
    muster.clock.advance(30_000);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: 'SIGKILL' });
    for (const query of ['', '?override_kill_timeout=0']) {
      const answer = await servers.destroy(server_id, query);
      expect([outcomeOf(answer), answer.body]).toEqual(['200', {}]);
    }
    expect((await servers.get(server_id)).destroyed_at).toBe(destroyed_at);
    expect(
      muster.events.filter((event) => event.event === 'server_ended' && event.server_id === server_id),
    ).toHaveLength(1);
  });

  test('concurrently is like doing it once', async () => {
    const server_id = await servers.run(`trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done`);
    await servers.waitForLines(server_id, 1);
    const answers = await Promise.all(Array.from({ length: 20 }, () => servers.destroy(server_id)));
    expect(new Set(answers.map(outcomeOf))).toEqual(new Set(['200']));
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 0 });
    expect(await servers.linesOf(server_id)).toEqual(['up', 'asked']);
  });

  test('at once after its creation leaves nothing of it', async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => servers.run('exec sleep 600')));
    await Promise.all(ids.map((server_id) => servers.destroy(server_id)));
    for (const server_id of ids) {
      await waitForEndEvent(muster, server_id);
      expect(findProcessesOf(server_id)).toEqual([]);
      expect(existsSync(folder(server_id))).toBe(false);
    }
  });
});

describe('a server that ends without a request', () => {
  const ENDS = [
    ['exit 0', { exit_code: 0, exit_signal: null }],
    ['exit 42', { exit_code: 42, exit_signal: null, crash: 'it ended with exit code 42' }],
    [
      'kill -ABRT $$',
      { exit_code: null, exit_signal: 'SIGABRT', crash: 'it was ended by the signal SIGABRT (it aborted itself)' },
    ],
  ] as const;
  test.each(ENDS)('by "%s" is destroyed, with its exit code or signal in the log', async (last, end) => {
    const server_id = await servers.run(`echo last words; (setsid sleep 600 &); ${last}`);
    expect(await waitForEndEvent(muster, server_id)).toEqual({
      event: 'server_ended',
      server_id,
      failure: null,
      ...end,
    });
    const server = await servers.get(server_id);
    expect(server.destroyed_at).toBeGreaterThanOrEqual(server.started_at);
    expect(findProcessesOf(server_id)).toEqual([]);
    expect(await servers.linesOf(server_id)).toEqual(['last words']);
  });

  test('because another program kills all of it has the reason in its log', async () => {
    const server_id = await servers.run('echo up; exec sleep 600');
    await servers.waitForLines(server_id, 1);
    for (const pid of findProcessesOf(server_id)) process.kill(pid, 'SIGKILL');
    const failure = 'the process was lost: the machine restarted, or another program ended it';
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: null, exit_signal: null, failure });
    expect(await servers.linesOf(server_id, 'std_err')).toEqual([`[muster] ${failure}`]);
  });

  test('before its start, without its build, shows paths of the machine to the operator only', async () => {
    const build = await uploadShell(muster.api, game, 'exec sleep 600');
    const body = await servers.bodyOf(build);
    rmSync(join(muster.config.data_directory, 'builds', build), { recursive: true });
    rmSync(join(muster.config.data_directory, 'objects'), { recursive: true });
    const { id: server_id } = (await servers.create(body)).body.server;
    const failure =
      'files of its build are missing in the storage of the service: upload the build again, and tell the operator of the service';
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: null, exit_signal: null, failure });
    expect(await servers.linesOf(server_id, 'std_err')).toEqual([`[muster] ${failure}`]);
    const logged = await waitFor(
      () => muster.events.find((event) => event.event === 'server_step_failed' && event.server_id === server_id),
      'the event',
    );
    expect(logged).toMatchObject({ step: 'start', cause: expect.any(Error) });
  });
});
