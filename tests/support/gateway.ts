import { type TestGame, uploadScript } from './game.ts';
import { serversOf } from './servers.ts';
import type { TestService } from './service.ts';
import { waitFor } from './wait.ts';

/** The domain of servers in tests. Requests name it in their header Host, so that it need not resolve. */
export const SERVERS_DOMAIN = 'games.test';

/**
 * A game server that knows nothing of the gateway: it answers http, and WebSockets at /socket. At /paired it accepts them
 * two at a time.
 */
export const WEB_SERVER = `
const chunks = async function* () {
  for (const chunk of ['one ', 'two ', 'three']) { yield chunk; await Bun.sleep(200); }
};
const answers = {
  '/headers': ({ headers, url }) => Response.json({ headers: Object.fromEntries(headers), path: new URL(url).pathname + new URL(url).search }),
  '/echo': async (request) => new Response(await request.arrayBuffer(), { headers: { 'x-method': request.method } }),
  '/refuse': () => new Response('too large', { status: 413 }),
  '/chunks': () => new Response(chunks),
  '/cookies': () => new Response('', { status: 302, headers: [['location', '/there'], ['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['connection', 'x-hop'], ['x-hop', '1']] }),
  '/origin-headers': () => new Response('', { headers: [
    ['alt-svc', 'clear'], ['clear-site-data', '"*"'], ['nel', '{}'], ['report-to', '{}'], ['reporting-endpoints', 'a="/"'],
    ['service-worker-allowed', '/'], ['strict-transport-security', 'max-age=9'], ['www-authenticate', 'Basic'], ['x-own', 'kept'],
    ['origin-trial', 'a'], ['sec-session-registration', '(ES256)'], ['secure-session-registration', '(ES256)'], ['set-login', 'logged-in'],
    ['speculation-rules', '"/r"'], ['use-as-dictionary', 'match="/*"'], ['x-accel-redirect', '/files'], ['x-sendfile', '/etc/passwd'],
    ['set-cookie', 'a=1; Path=/; Domain=games.test; Secure'], ['set-cookie', 'b=domain=2;domain=test'],
  ] }),
  '/file': () => new Response('a game file', { headers: { 'content-type': 'text/plain' } }),
  '/gzip': () => new Response(Bun.gzipSync('packed'), { headers: { 'content-encoding': 'gzip' } }),
  '/hang': ({ signal }) => {
    console.log('asked');
    signal.addEventListener('abort', () => console.log('left'));
    return new Promise(() => {});
  },
  '/exit': () => process.exit(3),
};
const waiting = [];
const paired = () => new Promise((accept) => {
  if (waiting.push(accept) === 2) for (const one of waiting.splice(0)) one();
});
Bun.serve({
  port: Number(process.env.PORT_web),
  hostname: '0.0.0.0',
  idleTimeout: 0,
  async fetch(request, server) {
    const { pathname } = new URL(request.url);
    const handshake = { headers: Object.fromEntries(request.headers), path: request.url.slice(request.url.indexOf('/', 8)) };
    if (pathname === '/echo-handshake' && server.upgrade(request, { data: { handshake } })) return;
    if (pathname === '/paired') await paired();
    else if (pathname !== '/socket') return answers[pathname]?.(request) ?? new Response('no such page', { status: 418 });
    const [protocol] = (request.headers.get('sec-websocket-protocol') ?? '').split(', ').slice(-1);
    const headers = protocol ? { 'sec-websocket-protocol': protocol } : {};
    if (!server.upgrade(request, { headers, data: request.headers.get('x-forwarded-for') })) return new Response('', { status: 400 });
  },
  websocket: {
    maxPayloadLength: 32 * 1024 ** 2,
    open: (socket) => void socket.send(socket.data.handshake ? JSON.stringify(socket.data.handshake) : 'hello ' + socket.data),
    message(socket, data) {
      if (data === 'close') socket.close(4001, 'as you wish');
      else if (data === 'large') socket.send(new Uint8Array(4 * 1024 ** 2));
      else if (data === 'exit') process.exit(3);
      else if (data === 'drop') socket.terminate();
      else socket.send(data);
    },
  },
});
console.log('listening');
`;

/** Starts a game server with a port "web" behind the gateway. Returns its id, the name of the port and its build. */
export async function startWebServer(
  muster: Pick<TestService, 'api'>,
  game: TestGame,
  { build = undefined as string | undefined } = {},
) {
  const servers = serversOf(muster, game);
  const used = build ?? (await uploadScript(muster.api, game, WEB_SERVER));
  const ports = { web: { protocol: 'http', routing: { game_guard: {} } }, game: { protocol: 'udp' } };
  const created = await servers.create(await servers.bodyOf(used, { network: { ports } }));
  const server_id: string = created.body.server.id;
  await servers.waitForLines(server_id, 1);
  return {
    server_id,
    name: `${server_id}-web`,
    build: used,
    lines: (count: number) => servers.waitForLines(server_id, count),
  };
}

/** Opens a player's WebSocket to a port by its name, and keeps the frames that it gets. */
export function openWebSocketPlayer({
  name = '',
  url = '',
  path = '/socket',
  protocols = [] as string[],
  tls = {} as Bun.TLSOptions,
  more_headers = {} as Record<string, string>,
} = {}) {
  const headers = { host: `${name}.${SERVERS_DOMAIN}`, 'x-forwarded-for': '192.0.2.7', ...more_headers };
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, {
    headers,
    protocols,
    tls,
  } as unknown as string[]);
  socket.binaryType = 'arraybuffer';
  const frames: (string | ArrayBuffer)[] = [];
  const opened = Promise.withResolvers<boolean>();
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.addEventListener('open', () => opened.resolve(true));
  socket.addEventListener('error', () => opened.resolve(false));
  socket.addEventListener('message', ({ data }) => void frames.push(data));
  socket.addEventListener('close', ({ code, reason }) => closed.resolve({ code, reason }));
  return {
    socket,
    frames,
    opened: opened.promise,
    closed: closed.promise,
    next: (count: number) => waitFor(() => frames.length >= count && frames, `${count} frames`),
    [Symbol.dispose]: () => socket.close(),
  };
}
