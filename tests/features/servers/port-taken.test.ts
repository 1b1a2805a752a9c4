import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { openExternalDatabase } from '../../support/database/database.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import type { TcpProxy } from '../../support/network/tcp-proxy.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { type Home, makeHome, type Program } from '../../support/program.ts';
import { IS_ROOT } from '../../support/runtimes/runtimes.ts';
import { serversOf } from '../../support/servers.ts';
import { waitFor } from '../../support/wait.ts';

const TAKEN = 'this is the game server';
/** Longer than a busy machine takes. A port that is only held refuses at once. */
const ANSWERED_WITHIN_MS = 20_000;
/** Takes ports at each address as soon as it can, answers there, and prints it. */
const takerOf = (ports: number[]) => `
const wanted = ${JSON.stringify(ports)}.flatMap((port) => ['127.0.0.1', '::1'].map((hostname) => ({ hostname, port })));
let tries = 0;
setInterval(() => {
  for (const one of [...wanted]) {
    try {
      Bun.serve({ ...one, reusePort: false, fetch: () => new Response('${TAKEN}') });
      wanted.splice(wanted.indexOf(one), 1);
      console.log('took ' + one.hostname + ' ' + one.port);
    } catch {}
  }
  tries += 1;
  if (tries % 200 === 0) console.log('tried ' + tries);
}, 1);`;

describe("a game server that takes the service's own port", () => {
  const opened = new AsyncDisposableStack();
  let home: Home;
  let program: Program;
  let game: TestGame;
  let server_id: string;
  let proxy: TcpProxy;
  beforeAll(async () => {
    const database = opened.use(await openExternalDatabase());
    const { url } = database;
    proxy = database.proxy;
    // Isolation would refuse the port.
    home = opened.use(await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: url, MUSTER_ISOLATION: 'off' }));
    program = await home.start();
    game = await makeGame(program.api, program.administrator_token);
    server_id = await startPortTaker();
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  async function startPortTaker(): Promise<string> {
    const servers = serversOf(program, game);
    const body = await servers.bodyOf(
      await uploadScript(program.api, game, takerOf([Number(new URL(program.url).port)])),
    );
    const { id } = (await servers.create(body)).body.server;
    await servers.waitForLines(id, 1);
    return id;
  }

  /** Ends the service and the holder of its port, and waits until the game server has the port. */
  async function giveUpPort(): Promise<void> {
    await program.stop('SIGTERM');
    const hold = Bun.file(join(home.data_directory, 'port-hold'));
    if (await hold.exists()) process.kill((await hold.json()).process.pid, 'SIGKILL');
    await waitFor(async () => (await output()).includes('took 127.0.0.1'), 'the game server to take the port');
    expect(await answerAt('127.0.0.1')).toBe(TAKEN);
  }

  const output = () => Bun.file(join(home.data_directory, 'servers', server_id, 'std_out')).text();
  const answerAt = (host: string): Promise<string> =>
    fetch(`http://${host}:${new URL(program.url).port}/health/live`, {
      signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
    }).then(
      (response) => response.text(),
      () => 'no answer',
    );

  test('port: the other loopback address is the service too, and never the game server', async () => {
    for (const host of ['127.0.0.1', '[::1]']) expect(await answerAt(host)).toBe('{"status":"ok"}');
    expect(await output()).not.toContain('took');
  });

  test.skipIf(!IS_ROOT)(
    'port: while the service is stopped, the game server does not get it',
    async () => {
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        await program.stop(signal);
        const before = (await output()).length;
        await waitFor(async () => (await output()).slice(before).includes('tried'), 'the game server to try');
        for (const host of ['127.0.0.1', '[::1]']) expect(await answerAt(host)).toBe('no answer');
        program = await home.start();
      }
      expect(await output()).not.toContain('took');
      expect(findProcessesOf(server_id)).not.toEqual([]);
    },
    300_000,
  );

  test('port: a game server that has it is ended, and the service starts on it', async () => {
    await giveUpPort();
    program = await home.start();
    for (const host of ['127.0.0.1', '[::1]']) expect(await answerAt(host)).toBe('{"status":"ok"}');
    expect(program.output()).toContain('"event":"server_took_port"');
    const servers = serversOf(program, game);
    await servers.waitForEnd(server_id);
    const { port } = new URL(program.url);
    const failure = `the server took port ${port}, which belongs to the service: listen on the port in PORT_<label> instead`;
    expect(await servers.waitForLines(server_id, 1, 'std_err')).toEqual([`[muster] ${failure}`]);
  }, 300_000);

  test('port: a game server that has it is ended also while the database is unreachable', async () => {
    server_id = await startPortTaker();
    await giveUpPort();
    await proxy.cut();
    const starting = home.launch();
    for (const host of ['127.0.0.1', '[::1]']) {
      await waitFor(async () => (await answerAt(host)) === '{"status":"ok"}', 'the service to have its port');
    }
    expect(starting.output()).toContain('"event":"server_took_port"');
    await proxy.heal();
    await waitFor(async () => (await fetch(`${home.url}/health/ready`)).ok, 'the service to be ready');
    await serversOf(program, game).waitForEnd(server_id);
    await starting.stop('SIGTERM');
    program = await home.start();
  }, 300_000);

  test('port: it is free once the service has ended and no game server runs', async () => {
    await program.stop('SIGTERM');
    expect(home.processes()).toEqual([]);
    expect(await Bun.file(join(home.data_directory, 'port-hold')).exists()).toBe(false);
  }, 300_000);
});

describe('a game server that takes the ports for https and http', () => {
  const [https_port, http_port] = [findFreePort(), findFreePort()];
  const opened = new AsyncDisposableStack();
  let home: Home;
  let program: Program;
  let game: TestGame;
  let server_id: string;
  beforeAll(async () => {
    const { url } = opened.use(await openExternalDatabase());
    const ports = { MUSTER_HTTPS_PORT: String(https_port), MUSTER_HTTP_PORT: String(http_port) };
    const settings = { ...ports, MUSTER_TLS_LOCAL: 'on', MUSTER_DEMO: 'off', DATABASE_URL: url };
    // Isolation would refuse the ports.
    home = opened.use(await makeHome({ ...settings, MUSTER_ISOLATION: 'off' }));
    program = await start();
    game = await makeGame(program.api, program.administrator_token);
    const servers = serversOf(program, game);
    const body = await servers.bodyOf(await uploadScript(program.api, game, takerOf([https_port, http_port])));
    server_id = (await servers.create(body)).body.server.id;
    await servers.waitForLines(server_id, 1);
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  const output = () => Bun.file(join(home.data_directory, 'servers', server_id, 'std_out')).text();
  /** Starts the service with a public address by http, so that no client has to trust its certificate. */
  const start = () => home.start({ settings: { MUSTER_PUBLIC_URL: home.url } });
  const answersOf = (host: string) =>
    Promise.all(
      [`https://${host}:${https_port}`, `http://${host}:${http_port}`].map((url) =>
        fetch(`${url}/health/live`, {
          signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
          tls: { rejectUnauthorized: false },
        }).then(
          (response) => response.text(),
          () => 'no answer',
        ),
      ),
    );
  const expectRunning = async () => {
    // The port for http redirects to that for https.
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      expect(await answersOf(host)).toEqual(['{"status":"ok"}', '{"status":"ok"}']);
    }
  };
  const holdOf = (name: string) => Bun.file(join(home.data_directory, name));

  test.skipIf(!IS_ROOT)(
    'public ports: while the service is stopped, the game server gets none',
    async () => {
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        await program.stop(signal);
        const before = (await output()).length;
        await waitFor(async () => (await output()).slice(before).includes('tried'), 'the game server to try');
        for (const host of ['127.0.0.1', '[::1]']) expect(await answersOf(host)).toEqual(['no answer', 'no answer']);
        program = await start();
        await expectRunning();
      }
      expect(await output()).not.toContain('took');
      expect(findProcessesOf(server_id)).not.toEqual([]);
    },
    300_000,
  );

  test('public ports: a game server that has them is ended, and the service starts on them', async () => {
    await program.stop('SIGTERM');
    for (const name of ['https-port-hold', 'http-port-hold']) {
      if (await holdOf(name).exists()) process.kill((await holdOf(name).json()).process.pid, 'SIGKILL');
    }
    for (const port of [https_port, http_port]) {
      await waitFor(
        async () => (await output()).includes(`took 127.0.0.1 ${port}`),
        'the game server to take the port',
      );
    }
    program = await start();
    await expectRunning();
    expect(program.output()).toContain('"event":"server_took_port"');
    await serversOf(program, game).waitForEnd(server_id);
  }, 300_000);

  test('public ports: they are free once the service has ended and no game server runs', async () => {
    await program.stop('SIGTERM');
    expect(home.processes()).toEqual([]);
    for (const name of ['https-port-hold', 'http-port-hold']) expect(await holdOf(name).exists()).toBe(false);
  }, 300_000);
});
