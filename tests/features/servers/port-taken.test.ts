import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { openExternalDatabase } from '../../support/database.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { type Home, makeHome, type Program } from '../../support/program.ts';
import { serversOf } from '../../support/servers.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait.ts';

const IS_ROOT = process.getuid?.() === 0;
const TAKEN = 'this is the game server';
/** Takes the port of the API at each address as soon as it can, answers there, and prints it. */
const PORT_TAKER_SOURCE = `
const port = Number(new URL(process.env.SERVICE_API_ENDPOINT).port);
const wanted = ['127.0.0.1', '::1'];
let tries = 0;
setInterval(() => {
  for (const hostname of [...wanted]) {
    try {
      Bun.serve({ hostname, port, reusePort: false, fetch: () => new Response('${TAKEN}') });
      wanted.splice(wanted.indexOf(hostname), 1);
      console.log('took ' + hostname);
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
  }, 90_000);
  afterAll(() => opened.disposeAsync(), 90_000);

  async function startPortTaker(): Promise<string> {
    const servers = serversOf(program, game);
    const body = await servers.bodyOf(await uploadScript(program.api, game, PORT_TAKER_SOURCE));
    const { id } = (await servers.create(body)).body.server;
    await servers.lines(id, 1);
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
    fetch(`http://${host}:${new URL(program.url).port}/health/live`, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.text(),
      () => 'no answer',
    );

  test('port: the other loopback address is the service too, and never the game server', async () => {
    for (const host of ['127.0.0.1', '[::1]']) expect(await answerAt(host)).toBe('{"status":"ok"}');
    expect(await output()).not.toContain('took');
  });

  test.skipIf(!IS_ROOT)(
    'port: while the service is away, the game server does not get it',
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
    90_000,
  );

  test('port: a game server that has it is ended, and the service starts on its own', async () => {
    await giveUpPort();
    program = await home.start();
    for (const host of ['127.0.0.1', '[::1]']) expect(await answerAt(host)).toBe('{"status":"ok"}');
    expect(program.output()).toContain('"event":"server_took_port"');
    const servers = serversOf(program, game);
    await servers.gone(server_id);
    const { port } = new URL(program.url);
    const failure = `the server took port ${port}, which belongs to the service: listen on the port in PORT_<label> instead`;
    expect(await servers.lines(server_id, 1, 'std_err')).toEqual([`[muster] ${failure}`]);
  }, 90_000);

  test('port: a game server that has it is ended also while the database is away', async () => {
    server_id = await startPortTaker();
    await giveUpPort();
    await proxy.cut();
    const starting = home.launch();
    for (const host of ['127.0.0.1', '[::1]']) {
      await waitFor(async () => (await answerAt(host)) === '{"status":"ok"}', 'the service to have its port');
    }
    expect(starting.output()).toContain('"event":"server_took_port"');
    await proxy.mend();
    await waitFor(async () => (await fetch(`${home.url}/health/ready`)).ok, 'the service to be ready');
    await serversOf(program, game).gone(server_id);
    await starting.stop('SIGTERM');
    program = await home.start();
  }, 90_000);

  test('port: it is free once the service has ended and no game server runs', async () => {
    await program.stop('SIGTERM');
    expect(home.processes()).toEqual([]);
    expect(await Bun.file(join(home.data_directory, 'port-hold')).exists()).toBe(false);
  }, 90_000);
});
