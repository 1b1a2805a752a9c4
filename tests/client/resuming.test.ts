import { afterEach, beforeAll, beforeEach, describe, expect, mock, spyOn, test } from 'bun:test';
import { resolve } from 'node:path';
import type { ClientOptions } from '../../src/client/client.ts';
import { SUBPROTOCOL } from '../../src/client/wire.ts';
import { QUICK, shareClientProxy, type Watcher, watchWith } from '../support/client.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { openDatabaseProxy } from '../support/network/database-proxy.ts';
import { makeMember } from '../support/people.ts';
import { openRestartableService } from '../support/restart.ts';
import { openTestService } from '../support/service.ts';
import { openServiceTokens } from '../support/service-tokens.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const MINUTE_MS = 60_000;
/** Longer than any test. */
const NEVER_MS = 3_600_000;

const muster = shareService({ MUSTER_WATCH_HOLD_MS: '1000' });
const proxied = shareClientProxy(muster);
let game: TestGame;
let path: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  path = `/cloud/games/${game.game_id}`;
});

const open = (options: Partial<ClientOptions> = {}) => proxied.open({ token: game.cloud_token, ...options });

/** Changes the game without the proxy, and returns a condition for bodies that show the change. */
async function change() {
  const name = crypto.randomUUID();
  const body = { display_name: name, config: {} };
  await muster.api.ok('POST', `${path}/versions`, { token: game.cloud_token, body });
  return (body: { game: { versions: { display_name: string }[] } }) =>
    body.game.versions.some(({ display_name }) => display_name === name);
}

/** Returns the number of answered requests of a route; a WebSocket is one. */
const countServed = (route: string) =>
  muster.events.filter((event) => event.event === 'request_served' && event.route === route).length;

/** Opens a server that is not the service, but accepts WebSockets as it does. */
function openSocketServer(onOpen: (socket: Bun.ServerWebSocket<unknown>) => void) {
  const headers = { 'sec-websocket-protocol': SUBPROTOCOL };
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, itself) =>
      itself.upgrade(request, { headers, data: undefined }) ? undefined : new Response(null, { status: 502 }),
    websocket: { open: onOpen, message() {} },
  });
  return {
    target: { host: '127.0.0.1', port: server.port ?? 0 },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function expectEachOnce({ bodies }: Watcher): void {
  expect(new Set(bodies.map(({ watch }) => watch.index)).size).toBe(bodies.length);
}

describe('client: resumes', () => {
  test('from the last index after a lost connection', async () => {
    const client = open();
    const watcher = watchWith(client, path);
    await watcher.next();
    for (let cuts = 0; cuts < 3; cuts += 1) {
      await proxied.proxy.cut();
      const isThere = await change();
      await proxied.proxy.heal();
      await watcher.next(isThere);
      await watcher.next(await change());
    }
    expectEachOnce(watcher);
  });

  const NO_FRAMES: [string, string | Uint8Array][] = [
    ['text that is not JSON', 'Bad gateway'],
    ['JSON that is no object', 'null'],
    ['bytes', new Uint8Array([1, 0, 255])],
  ];
  test.each(NO_FRAMES)('after a socket that gets %s instead of a frame', async (_, sent) => {
    const watcher = watchWith(open(), path);
    await watcher.next();
    let openings = 0;
    await using stranger = openSocketServer((socket) => {
      openings += 1;
      socket.send(sent);
    });
    await proxied.proxy.redirectTo(stranger.target);
    const isThere = await change();
    await waitFor(() => openings > 1, 'another attempt');
    await proxied.proxy.redirectTo({ host: '127.0.0.1', port: Number(new URL(muster.config.public_url).port) });
    await watcher.next(isThere);
    expectEachOnce(watcher);
  });

  test('after the service was unreachable at first', async () => {
    await proxied.proxy.cut();
    let sockets = 0;
    const openSocket = (...given: Parameters<NonNullable<ClientOptions['openSocket']>>) => {
      sockets += 1;
      return new WebSocket(...given);
    };
    const watcher = watchWith(open({ openSocket }), path);
    await waitFor(() => sockets > 3, 'several sockets to fail');
    await proxied.proxy.heal();
    await watcher.next();
    expect(watcher.errors).toEqual([]);
  });

  test('after a connection died silently', async () => {
    const client = open({ timing: { ...QUICK, ping_after_ms: 100, pong_within_ms: 1_000 } });
    const watcher = watchWith(client, path);
    await watcher.next();
    // Longer than a ping may remain without an answer, so its pings were answered.
    await Bun.sleep(2_500);
    expect(proxied.proxy.connections).toBe(1);
    proxied.proxy.stall();
    await watcher.next(await change());
    expect(proxied.proxy.connections).toBe(2);
    expectEachOnce(watcher);
  });

  test('at once when the page becomes visible and its connection has died', async () => {
    const client = open({ timing: { ...QUICK, ping_after_ms: NEVER_MS, pong_within_ms: 50 } });
    const watcher = watchWith(client, path);
    await watcher.next();
    proxied.proxy.stall();
    const isThere = await change();
    dispatchEvent(new Event('visibilitychange'));
    await watcher.next(isThere);
  });

  test('at once when the network is back, however long the pause', async () => {
    const client = open({ timing: { retry_ms: NEVER_MS, retry_max_ms: NEVER_MS } });
    const watcher = watchWith(client, path);
    await watcher.next();
    await proxied.proxy.cut();
    const isThere = await change();
    await proxied.proxy.heal();
    dispatchEvent(new Event('online'));
    await watcher.next(isThere);
  });

  describe('while polling', () => {
    const FAILURES: [string, () => Promise<void>][] = [
      [
        'after a failure',
        async () => {
          await proxied.proxy.cut();
          // By now its polls and its sockets have failed.
          await Bun.sleep(300);
          await proxied.proxy.heal();
        },
      ],
      ['over a dead connection', async () => proxied.proxy.stall()],
    ];
    let pause = 0;
    beforeEach(() => {
      pause = 0;
      spyOn(Math, 'random').mockImplementation(() => pause);
    });
    afterEach(() => mock.restore());

    test.each(FAILURES)('%s, at once when the network is back', async (_, fail) => {
      proxied.proxy.refuseWebSockets(502);
      const client = open({ timing: { retry_ms: NEVER_MS, retry_max_ms: NEVER_MS, poll_within_ms: NEVER_MS } });
      const watcher = watchWith(client, path);
      await watcher.next();
      pause = 0.5;
      await fail();
      const isThere = await change();
      dispatchEvent(new Event('online'));
      await watcher.next(isThere);
    });

    test('after a failure, at once when a socket opens', async () => {
      const timing = { retry_ms: NEVER_MS, retry_max_ms: NEVER_MS, open_within_ms: NEVER_MS, poll_within_ms: 200 };
      proxied.proxy.refuseWebSockets(502);
      const client = open({ timing });
      const watcher = watchWith(client, path);
      await watcher.next();
      const release = proxied.proxy.hold();
      const connections = proxied.proxy.connections;
      // One of them is the socket, which is not given up as polls are.
      await waitFor(() => proxied.proxy.connections > connections + 4, 'connections without an answer');
      pause = 0.5;
      await Bun.sleep(400);
      const isThere = await change();
      release();
      await watcher.next(isThere);
    });
  });

  test('after the service closed a socket with too many frames', async () => {
    const client = open();
    const watcher = watchWith(client, path);
    await watcher.next();
    for (let times = 0; times < 200; times += 1) watchWith(client, '/cloud/games').stop();
    const began = performance.now();
    await waitFor(() => {
      // The service asked for a pause, which the return of the network must not shorten.
      dispatchEvent(new Event('online'));
      return proxied.proxy.connections > 1;
    }, 'another connection');
    // Only time tells this from a pause that was cut short; a timer never fires early.
    expect(performance.now() - began).toBeGreaterThan(900);
    await watcher.next(await change());
    expectEachOnce(watcher);
  });

  test('although onConnection throws each time', async () => {
    // A process of its own, because an uncaught error fails a test.
    const script = `const { connect } = await import('${resolve(import.meta.dir, '../../src/client/client.ts')}');
process.on('uncaughtException', ({ message }) => console.log(message));
const onConnection = (is_connected) => { throw new Error('thrown at ' + is_connected); };
const [url, token, path] = process.argv.slice(1);
connect({ url, token, onConnection, timing: ${JSON.stringify(QUICK)} }).watch(path, ({ watch }) => console.log('body ' + watch.index));`;
    const args = [`http://127.0.0.1:${proxied.proxy.port}`, game.cloud_token, path];
    await using child = Bun.spawn([process.execPath, '-e', script, ...args], { stdout: 'pipe', stderr: 'inherit' });
    let stdout = '';
    const reading = (async () => {
      for await (const chunk of child.stdout) stdout += Buffer.from(chunk).toString();
    })();
    // The error is reported a moment later, perhaps after the body.
    const hasBody = () => stdout.includes('thrown at true\n') && stdout.includes('body ');
    await waitFor(hasBody, 'the first body');
    await proxied.proxy.cut();
    await waitFor(
      () => stdout.lastIndexOf('thrown at false\n') > stdout.lastIndexOf('thrown at true\n'),
      'the lost connection',
    );
    stdout = '';
    await change();
    await proxied.proxy.heal();
    await waitFor(hasBody, 'the body of the change');
    child.kill();
    await child.exited;
    await reading;
  });

  test('after a restart of the service', async () => {
    await using restartable = await openRestartableService();
    const { api, administrator_token: token } = restartable;
    const { group_id } = await makeGame(api, token);
    const profile = `/group/groups/${group_id}/profile`;
    const client = open({ url: restartable.config.public_url, token });
    const watcher = watchWith(client, profile);
    await watcher.next();
    await restartable.close();
    await restartable.open();
    // Once another watcher has a body, the first would have one too if there were any.
    await watchWith(client, '/cloud/games').next();
    expect(watcher.bodies).toHaveLength(1);
    await api.ok('POST', profile, { token, body: { display_name: 'Renamed' } });
    await watcher.next(({ group }) => group.display_name === 'Renamed');
    expectEachOnce(watcher);
  });

  test('after an outage of the database, which is not a refusal', async () => {
    await using proxied = await openDatabaseProxy(muster.database_address);
    const database_of = { database_address: { url: proxied.url }, clock: muster.clock };
    await using other = await openTestService({}, { database_of });
    const client = open({ url: other.config.public_url });
    await watchWith(client, '/cloud/games').next();
    await proxied.proxy.cut();
    const watcher = watchWith(client, path);
    await waitFor(() => other.events.some(({ event }) => event === 'watch_failed'), 'a read for the watcher to fail');
    expect([watcher.bodies, watcher.errors]).toEqual([[], []]);
    await proxied.proxy.heal();
    await watcher.next(await change());
  });
});

describe('client: an expired token', () => {
  /** Makes a caller whose tokens expire after some minutes. */
  async function makeExpiringCaller() {
    const tokens = await openServiceTokens(muster);
    const { identity_id } = await makeMember(muster, game);
    const issued: string[] = [];
    const issueToken = async () => {
      const token = await tokens.issue({ kind: 'identity', identity_id }, { lifetime_ms: 10 * MINUTE_MS });
      issued.push(token);
      return token;
    };
    return { issued, issueToken };
  }

  test('is replaced by a new one, and the subscription continues', async () => {
    const { issued, issueToken } = await makeExpiringCaller();
    const client = open({ token: issueToken });
    const watchers = [path, '/cloud/games'].map((one) => watchWith(client, one));
    await Promise.all(watchers.map((watcher) => watcher.next()));
    const polls = countServed('/cloud/games/:game_id');
    for (let times = 2; times < 4; times += 1) {
      muster.clock.advance(12 * MINUTE_MS);
      await waitFor(() => issued.length === times, 'the client to request another token');
      await watchers[0]?.next(await change());
    }
    expect(issued).toHaveLength(3);
    expect(countServed('/cloud/games/:game_id')).toBe(polls);
    for (const watcher of watchers) expectEachOnce(watcher);
  });

  test('is replaced for polls too', async () => {
    const { issued, issueToken } = await makeExpiringCaller();
    proxied.proxy.refuseWebSockets(502);
    const client = open({ token: issueToken, timing: { retry_ms: 20, retry_max_ms: NEVER_MS } });
    const watcher = watchWith(client, path);
    await watcher.next();
    const before = issued.length;
    muster.clock.advance(12 * MINUTE_MS);
    await waitFor(() => issued.length > before, 'the client to request another token');
    await watcher.next(await change());
    expect(watcher.errors).toEqual([]);
    expectEachOnce(watcher);
  });

  test('ends the subscription if there is no other', async () => {
    const { issueToken } = await makeExpiringCaller();
    const client = open({ token: await issueToken() });
    const watcher = watchWith(client, path);
    await watcher.next();
    muster.clock.advance(12 * MINUTE_MS);
    expect(await watcher.refusal()).toMatchObject({ code: 'CLAIMS_ENTITLEMENT_EXPIRED' });
  });

  test.each([
    ['sockets', undefined],
    ['polls', 502],
  ])('is requested again if it does not come (%s)', async (_, refused_status) => {
    proxied.proxy.refuseWebSockets(refused_status);
    let times = 0;
    const client = open({
      token() {
        times += 1;
        return times % 2 === 1 ? new Promise(() => {}) : game.cloud_token;
      },
      timing: { ...QUICK, poll_within_ms: 300 },
    });
    await watchWith(client, path).next();
    expect(times).toBeGreaterThan(1);
  });

  test('is requested again after the request failed; the console shows only the first failure', async () => {
    const shown = spyOn(console, 'error').mockImplementation(() => {});
    let times = 0;
    const client = open({
      async token() {
        times += 1;
        if (times < 6) throw new Error('not now');
        // As read from a file.
        return `${game.cloud_token}\n`;
      },
    });
    const sockets = countServed('/watch');
    await watchWith(client, path).next();
    expect(times).toBe(6);
    expect(shown.mock.calls).toEqual([['watch: no token; trying again:', new Error('not now')]]);
    shown.mockRestore();
    await waitFor(() => countServed('/watch') > sockets, 'a socket');
    expect(times).toBe(6);
  });
});

describe('client: a revoked token', () => {
  const WAYS: [string, number | undefined][] = [
    ['sockets', undefined],
    ['polls', 502],
  ];

  /** Makes a game of its own, whose cloud tokens a test can revoke. */
  async function makeRevocable() {
    const own = await makeGame(muster.api, muster.administrator_token);
    const token = muster.administrator_token;
    const own_path = `/cloud/games/${own.game_id}`;
    const issueToken = async (): Promise<string> =>
      (await muster.api.ok('POST', `${own_path}/tokens/cloud`, { token, body: {} })).token;
    return {
      own_path,
      old_token: own.cloud_token,
      issueToken,
      revoke: () => muster.api.ok('POST', `${own_path}/tokens/revoke`, { token, body: {} }),
      publish: (display_name: string) =>
        muster.api.ok('POST', `${own_path}/versions`, { token, body: { display_name, config: {} } }),
    };
  }

  test.each(WAYS)('is replaced by a new one, and the subscription continues (%s)', async (_, refused_status) => {
    proxied.proxy.refuseWebSockets(refused_status);
    const { own_path, issueToken, revoke, publish } = await makeRevocable();
    let times = 0;
    const client = open({
      token() {
        times += 1;
        return issueToken();
      },
    });
    const watcher = watchWith(client, own_path);
    await watcher.next();
    const before = times;
    await revoke();
    await waitFor(() => times > before, 'the client to request another token');
    await publish('after the revocation');
    await watcher.next(({ game }) => JSON.stringify(game.versions).includes('after the revocation'));
    expectEachOnce(watcher);
  });

  test.each(WAYS)('is reported once if the function returns it again (%s)', async (_, refused_status) => {
    proxied.proxy.refuseWebSockets(refused_status);
    const { own_path, old_token, revoke } = await makeRevocable();
    const watcher = watchWith(open({ token: () => old_token }), own_path);
    await watcher.next();
    await revoke();
    expect(await watcher.refusal()).toMatchObject({ code: 'TOKEN_REVOKED' });
    expect(watcher.errors).toHaveLength(1);
  });
});

describe('client: a program', () => {
  /** Starts a program that has the client and its options. */
  async function run(program: string) {
    const client_file = resolve('src/client/client.ts');
    const { port } = proxied.proxy;
    const given = { url: `http://127.0.0.1:${port}`, token: game.cloud_token };
    const text = `const [{ connect }, options] = [await import(${JSON.stringify(client_file)}), ${JSON.stringify(given)}];
const timing = { retry_ms: ${NEVER_MS}, retry_max_ms: ${NEVER_MS} };
const path = ${JSON.stringify(path)};
${program}`;
    const { stdout, exited } = Bun.spawn([process.execPath, '-e', text], { stdout: 'pipe', stderr: 'inherit' });
    const reader = stdout.pipeThrough(new TextDecoderStream()).getReader();
    return { read: async () => (await reader.read()).value, exited };
  }

  test('that closes the client in onConnection ends', async () => {
    const { read, exited } = await run(`
      const onConnection = (is_connected) => is_connected ? console.log('connected') : client.close();
      const client = connect({ ...options, timing, onConnection });
      client.watch(path, () => {});`);
    expect(await read()).toBe('connected\n');
    await proxied.proxy.cut();
    expect(await exited).toBe(0);
  });

  test('without WebSocket watches over the sockets that it opens itself', async () => {
    const { read, exited } = await run(`
      const Socket = WebSocket;
      delete globalThis.WebSocket;
      const openSocket = (url, protocols) => new Socket(url, protocols);
      const onConnection = (is_connected) => {
        console.log(is_connected);
        client.close();
      };
      const client = connect({ ...options, timing, openSocket, onConnection });
      client.watch(path, () => {});`);
    expect(await read()).toBe('true\n');
    expect(await exited).toBe(0);
  });
});
