import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { AnswerDeadline } from '../../../src/features/gateway/answer-deadline.ts';
import { passRequest } from '../../../src/features/gateway/request-passing.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { makeGame, uploadScript } from '../../support/game.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { holdConnections } from '../../support/network/held-connections.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

/** Lets Bun send more requests at a time than the limit of an address. */
const MANY = { BUN_CONFIG_MAX_HTTP_REQUESTS: '4096' };
const SETTINGS = { MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN };
/** More requests than the limits of an address. */
const TRIES_MAX = 300;

let opened: AsyncDisposableStack;
let limited: TestService;
let name: string;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const one = opened.use(await openTestService(SETTINGS));
  const game = await makeGame(one.api, one.administrator_token);
  name = (await startWebServer(one, game)).name;
  const small = { ...SETTINGS, MUSTER_LIMITS_SCALE: '1', ...MANY };
  limited = opened.use(await openTestService(small, { database_of: one }));
}, 300_000);
afterAll(() => opened.disposeAsync());

describe('gateway: one address', () => {
  test('may open a limited number of WebSockets in a second, and at a time', async () => {
    using players = new DisposableStack();
    const url = limited.config.local_url;
    const isOpen = () => players.use(openWebSocketPlayer({ name, url })).opened;
    let count = 0;
    while (count < TRIES_MAX && (await isOpen())) count += 1;
    expect(count).toBeWithin(50, 257);
    const handshake = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
    const host = `${name}.${SERVERS_DOMAIN}`;
    const refused = await waitFor(async () => {
      const answers = Array.from({ length: 60 }, () =>
        fetch(`${url}/socket`, { headers: { ...handshake, ...key, host } }).catch(() => undefined),
      );
      return (await Promise.all(answers)).find((answer) => answer?.status === 429);
    }, 'an answer that refuses');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ code: 'GATEWAY_TOO_MANY_CONNECTIONS' });
    players.dispose();
    await waitFor(async () => {
      using player = openWebSocketPlayer({ name, url });
      return await player.opened;
    }, 'the next WebSocket');
  });

  test('may have a limited number of requests in progress', async () => {
    const { hostname, port } = new URL(limited.config.local_url);
    const host = `${name}.${SERVERS_DOMAIN}`;
    // Not fetch: this process has a limit for fetches, which the gateway uses here too.
    const hanging = Array.from({ length: 256 }, () => connect(Number(port), hostname));
    for (const socket of hanging) socket.write(`GET /hang HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const get = () =>
      sendRaw(limited.config.local_url, `GET /headers HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const refused = await waitFor(async () => {
      const answer = await get();
      return answer.status === 429 && answer;
    }, 'an answer that refuses');
    expect([refused.body.code, refused.headers.get('retry-after')]).toEqual(['GATEWAY_TOO_MANY_CONNECTIONS', '1']);
    for (const socket of hanging) socket.destroy();
    await waitFor(async () => (await get()).status === 200, 'the requests to end');
  });
});

describe('gateway: names of servers that do not run', () => {
  test('are looked up a limited number of times for an address, which keeps the servers that run', async () => {
    const { local_url } = limited.config;
    const get = (server_name: string) =>
      fetch(`${local_url}/headers`, { headers: { host: `${server_name}.${SERVERS_DOMAIN}` } });
    expect((await get(name)).status).toBe(200);
    const unknown = await Promise.all(Array.from({ length: 1_300 }, () => get(`${crypto.randomUUID()}-web`)));
    const statuses = Map.groupBy(unknown, ({ status }) => status);
    expect([...statuses.keys()].sort()).toEqual([404, 429]);
    // Two fixed minutes at most.
    expect(statuses.get(404)?.length).toBeLessThanOrEqual(1_200);
    expect((await get(name)).status).toBe(200);
  });
});

describe('gateway: all servers of one game', () => {
  test('may have half of the requests in progress, while the service answers for other games', async () => {
    // Of 32 fetches, 12 are for game servers.
    const settings = { ...SETTINGS, BUN_CONFIG_MAX_HTTP_REQUESTS: '32' };
    await using small = await openTestService(settings);
    const startGame = () => makeGame(small.api, small.administrator_token);
    const [game, other_game] = [await startGame(), await startGame()];
    const one = await startWebServer(small, game);
    const sibling = await startWebServer(small, game, { build: one.build });
    const other = await startWebServer(small, other_game);
    const leaving = new AbortController();
    const get = (server: { name: string }, path: string, init: RequestInit = {}) =>
      fetch(`${small.config.local_url}${path}`, { ...init, headers: { host: `${server.name}.${SERVERS_DOMAIN}` } });
    const hanging = [one, one, one, sibling, sibling, sibling].map((server) =>
      get(server, '/hang', { signal: leaving.signal }).catch(() => undefined),
    );
    await Promise.all([one.lines(4), sibling.lines(4)]);

    const refused = await get(sibling, '/headers');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.json()).toMatchObject({ code: 'GATEWAY_GAME_BUSY' });
    expect((await get(other, '/headers')).status).toBe(200);
    leaving.abort();
    await Promise.all(hanging);
    await waitFor(async () => (await get(sibling, '/headers')).status === 200, 'the requests to end');
  }, 300_000);
});

/** A server that sends one event, and then nothing. */
const EVENTS_SERVER = `
Bun.serve({
  port: Number(process.env.PORT_web),
  hostname: '0.0.0.0',
  idleTimeout: 0,
  fetch: () => new Response(new ReadableStream({ start: (stream) => stream.enqueue('data: 1\\n\\n') })),
});
console.log('listening');
`;

test('gateway: a silent stream of events is in use, so an address over its limit loses idle connections instead', async () => {
  const PER_ADDRESS_MAX = 20;
  const settings = { ...SETTINGS, MUSTER_CONNECTIONS_PER_ADDRESS_MAX: String(PER_ADDRESS_MAX) };
  await using muster = await openTestService(settings);
  const game = await makeGame(muster.api, muster.administrator_token);
  const build = await uploadScript(muster.api, game, EVENTS_SERVER);
  const events = await startWebServer(muster, game, { build });
  const open = (count: number, path: string, host: string) =>
    holdConnections({
      base_url: muster.config.local_url,
      address: '127.0.0.9',
      count,
      text: `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    });
  using stream = open(1, '/', `${events.name}.${SERVERS_DOMAIN}`);
  await waitFor(() => stream.received[0]?.includes('data: 1'), 'the first event');
  using idle = open(2 * PER_ADDRESS_MAX, '/health/live', 'localhost');
  await waitFor(() => idle.closedCount() + stream.closedCount() > PER_ADDRESS_MAX, 'the excess to be closed');
  expect(stream.closedCount()).toBe(0);
}, 300_000);

/** A relay for requests to the server `to`. By default, that answers bodies with the same, and other requests with 32 MiB. */
function openRelay({
  body_pause_max_ms = 30_000,
  to = undefined as string | undefined,
  bytes_max = Number.MAX_SAFE_INTEGER,
} = {}) {
  const received = Promise.withResolvers<string>();
  let ended = 0;
  let sent = 0;
  const game = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method === 'GET') return new Response(new Uint8Array(32 * 1024 ** 2));
      const text = await request.text().catch(() => 'cut');
      received.resolve(text);
      return new Response(text);
    },
  });
  const bytes_a_minute = { of_server: bytes_max, of_address: bytes_max };
  const traffic = createTraffic({ limits: { is_on: true, scale: 1 }, bytes_a_minute })
    .ofServer('a server')
    .ofClient('127.0.0.1');
  const client = { address: '127.0.0.1', host: 'game.example.com', proto: 'http' } as const;
  const front = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const onEnd = () => {
        ended += 1;
      };
      const server_address = to ?? game.url.host;
      const passed = { server_id: 'a server', server_address, target: '/', is_by_path: false, has_presence: false };
      const onBodySent = () => {
        sent += 1;
      };
      const options = { body_pause_max_ms, onBodySent };
      return await passRequest({ ...passed, client, traffic, onEnd }, request, options).catch((error) =>
        error instanceof ServiceError
          ? new Response(error.code, { status: error.status })
          : new Response('failed', { status: 400 }),
      );
    },
  });
  return {
    /** What the server got. */
    received: received.promise,
    /** Returns how many bodies the servers have been sent whole. */
    sentCount: () => sent,
    /** Returns how many answers have ended. */
    endedCount: () => ended,
    url: front.url.href,
    connect: () => connect(front.port ?? 0, '127.0.0.1'),
    [Symbol.dispose]() {
      void game.stop(true);
      void front.stop(true);
    },
  };
}

const POST = 'POST / HTTP/1.1\r\nHost: game.example.com\r\nContent-Length: 100000\r\n\r\n';

/** Sends a head, then pieces until the connection is closed or an answer has come. Returns what was received. */
async function drip(socket: ReturnType<typeof connect>, head: string, piece: string, every_ms: number) {
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = '';
  socket.on('data', (bytes) => {
    received += String(bytes);
    if (received.includes('\r\n\r\n')) resolve(received);
  });
  socket.on('error', () => {});
  socket.on('close', () => resolve(received));
  socket.write(head);
  const dripping = setInterval(() => socket.write(piece), every_ms);
  try {
    return await promise;
  } finally {
    clearInterval(dripping);
    socket.destroy();
  }
}

describe('gateway: a body', () => {
  test('that comes byte by byte is refused, and the server is not kept waiting', async () => {
    using relay = openRelay({ body_pause_max_ms: 200 });
    expect(await drip(relay.connect(), POST, 'x', 20)).toContain('GATEWAY_BODY_SLOW');
    expect(await relay.received).toBe('cut');
  });

  test('that stops after a fast beginning is refused', async () => {
    using relay = openRelay({ body_pause_max_ms: 200 });
    expect(await drip(relay.connect(), POST + 'x'.repeat(90_000), '', 1_000)).toContain('GATEWAY_BODY_SLOW');
  });

  test('with more bytes than a client may exchange in a minute is refused for that, and does not reach the server whole', async () => {
    using relay = openRelay({ bytes_max: 50_000 });
    const answer = await drip(relay.connect(), POST, 'x'.repeat(5_000), 20);
    expect(answer).toStartWith('HTTP/1.1 429');
    expect(answer).toContain('GATEWAY_TOO_MANY_BYTES');
    expect(await relay.received).toBe('cut');
  });

  test('that comes slowly, but fast enough, is passed on', async () => {
    using relay = openRelay({ body_pause_max_ms: 5_000 });
    const answer = await drip(relay.connect(), POST, 'x'.repeat(5_000), 20);
    expect(answer).toStartWith('HTTP/1.1 200');
    expect(await relay.received).toHaveLength(100_000);
  });
});

test('gateway: a body that is cut because the server has answered does not count as sent', async () => {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        socket.end('HTTP/1.1 413 Content Too Large\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno');
      },
    },
  });
  using relay = openRelay({ to: `127.0.0.1:${server.port}` });
  expect(await drip(relay.connect(), POST, 'x'.repeat(100), 1_000)).toStartWith('HTTP/1.1 413');
  expect(relay.sentCount()).toBe(0);
  server.stop(true);
});

test('gateway: an answer that is not read is in progress until its client leaves', async () => {
  using relay = openRelay();
  const socket = relay.connect();
  const beginning = Promise.withResolvers<void>();
  socket.once('data', () => {
    socket.pause();
    beginning.resolve();
  });
  socket.write('GET / HTTP/1.1\r\nHost: game.example.com\r\n\r\n');
  await beginning.promise;
  await (await fetch(relay.url, { method: 'POST', body: 'short' })).text();
  expect((await (await fetch(relay.url)).arrayBuffer()).byteLength).toBe(32 * 1024 ** 2);
  await waitFor(() => relay.endedCount() === 2, 'the answers that are read');
  socket.destroy();
  await waitFor(() => relay.endedCount() === 3, 'the answer whose client has left');
});

test('gateway: a request whose client has left before it is passed on ends at once', () => {
  using deadline = new AnswerDeadline({ client: AbortSignal.abort(), server_id: 'a server', has_body: true });
  expect([deadline.signal.aborted, deadline.failure]).toEqual([true, undefined]);
});

test('gateway: a short answer is in progress until the server has sent it all, and keeps its length', async () => {
  const answering: Bun.Socket[] = [];
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        answering.push(socket);
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nfirst');
        if (answering.length > 1) socket.write(' last');
      },
    },
  });
  using relay = openRelay({ to: `127.0.0.1:${server.port}` });
  const slow = fetch(relay.url);
  await waitFor(() => answering.length === 1, 'the first part of the answer');
  expect(await (await fetch(relay.url)).text()).toBe('first last');
  expect(relay.endedCount()).toBe(1);
  answering[0]?.write(' late');
  const answer = await slow;
  expect([answer.headers.get('content-length'), await answer.text()]).toEqual(['10', 'first late']);
  expect(relay.endedCount()).toBe(2);
  server.stop(true);
});

test('gateway: an answer in chunks is passed on while it arrives, whatever length it announces', async () => {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\nTransfer-Encoding: chunked';
        socket.write(`${head}\r\n\r\n15\r\nmore than ten letters\r\n`);
      },
    },
  });
  using relay = openRelay({ to: `127.0.0.1:${server.port}` });
  const answer = await fetch(relay.url);
  expect(answer.headers.get('content-length')).toBeNull();
  const reader = answer.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('more than ten letters');
  await reader?.cancel();
  server.stop(true);
});

// A head may take 12 s and a pause of a body 30 s, so this runs only at full length.
test.skipIf(!IS_FULL_LENGTH)(
  'gateway: connections with a slow head or body are closed',
  async () => {
    const host = `Host: ${name}.${SERVERS_DOMAIN}\r\n`;
    const { hostname, port } = new URL(limited.config.local_url);
    const open = () => connect(Number(port), hostname);
    const [head, body] = await Promise.all([
      drip(open(), `GET /headers HTTP/1.1\r\n${host}`, 'X-More: 1\r\n', 1_000),
      drip(open(), `POST /echo HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n`, 'x', 1_000),
    ]);
    expect(head).toBe('');
    expect(body).toContain('GATEWAY_BODY_SLOW');
  },
  150_000,
);
