import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openDatabase } from '../../src/platform/database/database.ts';
import type { EmbeddedPostgres } from '../../src/platform/database/embedded.ts';
import { findPostmaster } from '../../src/platform/database/postmaster.ts';
import { createApi } from '../support/api.ts';
import { connectionOf, makePostgresDirectory, type PostgresDirectory, query } from '../support/database/embedded.ts';
import { makeGame } from '../support/game.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { openTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.ts';
import { type Home, makeHome, waitUntilReady } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';
import { openSocket } from '../support/watch/socket.ts';

type Launched = ReturnType<Home['launch']>;

const opened = new AsyncDisposableStack();
let postgres_directory: PostgresDirectory;
let postgres: EmbeddedPostgres;
let proxy: TcpProxy;
let home: Home;
beforeAll(async () => {
  postgres_directory = opened.use(await makePostgresDirectory());
  proxy = opened.use(await openTcpProxy(connectionOf(postgres_directory)));
  const DATABASE_URL = `postgres://muster:hunter2@127.0.0.1:${proxy.port}/postgres`;
  home = opened.use(await makeHome({ DATABASE_URL, MUSTER_DEMO: 'off' }));
  await proxy.cut();
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

const readPort = () => new URL(home.url).port;

/** Waits until the program answers that it is not ready for this reason. */
async function waitForReason(program: Launched, reason: string): Promise<void> {
  const { get } = createApi(home.url);
  await waitFor(
    async () => {
      const answer = await get('/health/ready').catch(() => undefined);
      return answer?.status === 503 && answer.body.metadata?.reasons?.[0]?.message === reason;
    },
    () => `the program to wait because of "${reason}": ${program.output()}`,
  );
}

/** Returns the reasons for waiting that the program logged, in order. */
const loggedReasons = (program: Launched): string[] =>
  program
    .output()
    .split('\n')
    .filter((line) => line.includes('"database_awaited"'))
    .map((line) => JSON.parse(line).reason);

/**
 * Requests /health/live repeatedly, at both loopback addresses. The returned function ends this, and returns every
 * answer that was not 200.
 */
function watchHealth() {
  const failures: unknown[] = [];
  let is_over = false;
  const watching = Promise.all(
    ['127.0.0.1', '[::1]'].map(async (host) => {
      while (!is_over) {
        const answer = await fetch(`http://${host}:${readPort()}/health/live`, { keepalive: false }).catch(String);
        if (!(answer instanceof Response && answer.ok)) failures.push(answer);
        await Bun.sleep(1);
      }
    }),
  );
  return async () => {
    is_over = true;
    await watching;
    return failures;
  };
}

describe('the database is unreachable when the service starts', () => {
  let program: Launched;
  beforeAll(async () => {
    program = home.launch();
    await waitForReason(program, 'the database refuses connections (ECONNREFUSED)');
  }, 300_000);

  test('database unreachable: the process is alive and not ready', async () => {
    for (const host of ['127.0.0.1', '[::1]']) {
      const api = createApi(`http://${host}:${readPort()}`);
      const live = await api.get('/health/live');
      expect([live.status, live.body]).toEqual([200, { status: 'ok' }]);
      const ready = await api.get('/health/ready');
      expect(ready.status).toBe(503);
      expect(ready.headers.get('retry-after')).toBe('1');
      expect(ready.body).toMatchObject({
        code: 'SERVICE_NOT_READY',
        message:
          'The service is not ready: the database refuses connections (ECONNREFUSED). metadata.reasons says what to do about each reason.',
        metadata: {
          reasons: [
            {
              code: 'DATABASE_UNAVAILABLE',
              message: 'the database refuses connections (ECONNREFUSED)',
              advice: expect.stringContaining('Start PostgreSQL'),
            },
          ],
        },
        ray_id: ready.headers.get('rvt-ray-id'),
      });
    }
  });

  test('database unreachable: every other request is refused with a retry time, with a body or without', async () => {
    const api = createApi(home.url);
    const answers = await Promise.all([
      api.get('/'),
      api.get('/matchmaker/regions'),
      api.post('/matchmaker/lobbies/find', 'a token', { game_modes: ['default'] }),
      api.get('/no/such/path'),
    ]);
    for (const { status, body, headers } of answers) {
      expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'DATABASE_UNAVAILABLE', '2']);
    }
  });

  test('database unreachable: pages of other origins may read the refusals', async () => {
    const origin = 'https://game.example.com';
    const url = `${home.url}/matchmaker/lobbies/find`;
    const preflight = await fetch(url, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([
      204,
      'GET, POST, PUT, PATCH, DELETE',
    ]);
    const answer = await fetch(url, { method: 'POST', headers: { origin }, body: '{}' });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([503, origin]);
    expect((await fetch(`${home.url}/cloud/games`, { headers: { origin } })).status).toBe(403);
  });

  test('database unreachable: a second Muster does not get the port', async () => {
    await using other = await makeHome({ MUSTER_PORT: readPort(), DATABASE_URL: 'postgres://muster@127.0.0.1:1/none' });
    const { exit_code, output } = await other.run();
    expect(exit_code).toBe(1);
    expect(output.split('\n').at(-2)).toBe(
      `Port ${readPort()} is taken by another program: stop that one, or set MUSTER_PORT to a free port.`,
    );
  });

  test('database unreachable: once it is back, the service becomes ready by itself, and was alive all the time', async () => {
    const endWatching = watchHealth();
    postgres = opened.use(await postgres_directory.open());
    await proxy.heal();
    await waitUntilReady(home.url);
    expect(await endWatching()).toEqual([]);
    expect(loggedReasons(program)).toEqual(['the database refuses connections (ECONNREFUSED)']);

    const token = (await Bun.file(`${home.data_directory}/administrator-token`).text()).trim();
    const game = await makeGame(createApi(home.url), token);
    for (const host of ['127.0.0.1', '[::1]']) {
      const url = `http://${host}:${readPort()}`;
      expect((await createApi(url).get('/matchmaker/regions', game.public_token)).status).toBe(200);
      using socket = openSocket(url, { token: game.cloud_token });
      const key = await socket.subscribe('one', `/cloud/games/${game.game_id}`);
      expect((await socket.body(key)).game.game_id).toBe(game.game_id);
    }
    // A body above the default limit of Bun.
    const head = [
      'POST /cloud/games HTTP/1.1',
      'Host: here',
      'Connection: close',
      `Content-Length: ${129 * 1024 ** 2}`,
    ];
    const { body } = await sendRaw(home.url, `${head.join('\r\n')}\r\n\r\n`);
    expect(body.code).toBe('API_UNAUTHORIZED');
    expect(await program.stop('SIGTERM')).toBe(0);
    await waitFor(() => home.processes().length === 0, 'all its processes to end');
  }, 300_000);
});

describe('the database is not usable yet', () => {
  test('database shutting down: a start waits, and logs the reason', async () => {
    const staying = openDatabase(postgres.connection, 1);
    await staying.queries.execute('select 1');
    const postmaster = findPostmaster(postgres_directory.cluster)?.pid ?? 0;
    // A smart shutdown waits for connected clients, and refuses others with 57P03.
    process.kill(postmaster, 'SIGTERM');
    const program = home.launch();
    await waitForReason(program, 'the database is starting up or shutting down (57P03)');
    await staying[Symbol.asyncDispose]();
    await waitUntilReady(home.url);
    expect(findPostmaster(postgres_directory.cluster)?.pid).not.toBe(postmaster);
    expect(loggedReasons(program)[0]).toBe('the database is starting up or shutting down (57P03)');
    expect(program.output()).not.toContain('hunter2');
    expect(await program.stop('SIGTERM')).toBe(0);
  }, 300_000);

  test('database busy or read-only: a start waits for it too', async () => {
    await query(postgres, `alter database postgres set lock_timeout = '100ms'`);
    await using operator = openDatabase(postgres.connection, 1);
    const program = home.launch();
    await operator.transact(async (tx) => {
      await tx.execute('lock table epochs in access exclusive mode');
      await waitForReason(program, 'the database has a table that something else uses, such as a backup (55P03)');
    });
    await waitUntilReady(home.url);
    expect(await program.stop('SIGTERM')).toBe(0);

    await query(
      postgres,
      'alter database postgres reset lock_timeout',
      'alter database postgres set default_transaction_read_only = on',
    );
    const next = home.launch();
    await waitForReason(next, 'the database is read-only (25006)');
    await query(postgres, 'begin read write', 'alter database postgres reset default_transaction_read_only', 'commit');
    await waitUntilReady(home.url);
    expect(await next.stop('SIGTERM')).toBe(0);
  }, 300_000);
});

describe('a waiting start is stopped', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`database unreachable: ${signal} ends the wait`, async () => {
      await proxy.cut();
      const program = home.launch({ settings: { MUSTER_LOG: 'info' } });
      await waitForReason(program, 'the database refuses connections (ECONNREFUSED)');
      expect(await program.stop(signal)).toBe(0);
      expect(program.output()).toContain(`"reason":"${signal}","event":"service_stopping"`);
      await waitFor(() => home.processes().length === 0, 'all its processes to end');
      await proxy.heal();
    }, 300_000);
  }

  test('database silent: SIGTERM ends the first attempt, before the wait is logged', async () => {
    const release = proxy.hold();
    const before = proxy.connections;
    const program = home.launch();
    await waitFor(() => proxy.connections > before, 'the program to connect');
    expect(await program.stop('SIGTERM')).toBe(0);
    release();
    expect(program.output()).toBe('');
    await waitFor(() => home.processes().length === 0, 'all its processes to end');
  }, 300_000);
});

test('database unreachable: ctrl-C ends the service, which logs that its game servers were not stopped', async () => {
  const program = await home.start();
  await proxy.cut();
  expect(await program.stop('SIGINT')).toBe(0);
  expect(program.output()).toContain('"event":"servers_stop_failed"');
  await proxy.heal();
  // The next stop ends the process that holds the port for servers that may be left.
  expect(await (await home.start()).stop('SIGINT')).toBe(0);
  await waitFor(() => home.processes().length === 0, 'all its processes to end');
}, 300_000);
