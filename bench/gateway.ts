// Measures the gateway: `bun bench/gateway.ts`. Requests and WebSockets of a game server, directly, through Muster and
// through nginx, by turns; TLS handshakes with Muster and with Bun alone; what idle WebSockets cost, also with TLS; and what
// a game that sends 100 MB a second does to the API.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeGame, uploadScript } from '../tests/support/game.ts';
import { findFreePort } from '../tests/support/network/test-ports.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';
import { certifyLocalhost } from '../tests/support/relayed.ts';
import { serversOf } from '../tests/support/servers.ts';
import { measureWays, type Result } from './gateway/ways.ts';
import { openFilesMax, residentBytes } from './meter.ts';
import { atLeast, atMost, type Goal, printGoals, show, within } from './report.ts';
import { runBench } from './run.ts';
import { measureAtRate, percentile } from './samples.ts';

const SECONDS = 4;
const CONNECTIONS = 64;
const CONCURRENT_HANDSHAKES = 16;
/** Muster has two descriptors for each, and needs some of its own. */
const IDLE_SOCKETS = Math.min(10_000, Math.floor((openFilesMax() - 500) / 2));
/** All clients of the bench have one address. */
const CONNECTIONS_MAX = 20_000;
const PROBES = 600;
const PROBE_EVERY_MS = 10;
/** Below it, the game sends so little that nothing is shown. */
const FLOOD_BYTES_PER_SECOND_MIN = 80_000_000;

type Kind = 'http' | 'socket' | 'handshake';
interface Way {
  name: string;
  url: string;
  host: string;
}

await runBench(async (opened) => {
  const { settings: tls } = await certifyLocalhost();
  const limits = { MUSTER_LIMITS: 'off', MUSTER_CONNECTIONS_PER_ADDRESS_MAX: String(CONNECTIONS_MAX) };
  const home = opened.use(await makeHome({ ...tls, ...limits, MUSTER_DEMO: 'off' }));
  const start = () => home.start({ command: commandOf('source') });
  const program = await start();
  const [server, second] = await startServers(program);
  const direct: Way = { name: 'direct', url: `http://127.0.0.1:${server.port}`, host: '127.0.0.1' };
  const ours: Way = { name: 'Muster', url: home.url, host: hostOf(server) };
  const nginx = await openNginx(opened, server.port);
  const ways = nginx ? [direct, ours, nginx] : [direct, ours];
  if (!nginx) console.log('nginx is not installed, so there is no peer.');

  const goals: Goal[] = [];
  for (const kind of ['http', 'socket'] as const) {
    const [direct_turn, our_turn, nginx_turn] = await measure(kind, ways, CONNECTIONS);
    const [one_direct, one_ours] = await measure(kind, [direct, ours], 1);
    if (!direct_turn || !our_turn || !one_direct || !one_ours) continue;
    const what = kind === 'http' ? 'requests/s' : 'frames/s of WebSockets';
    goals.push(atLeast(`${what} of direct`, kind === 'http' ? 0.5 : 0.7, our_turn.a_second / direct_turn.a_second));
    if (nginx_turn) goals.push(atLeast(`${what} of nginx`, 0.8, our_turn.a_second / nginx_turn.a_second));
    goals.push(within(`${what}: added p50 of one client`, 0.3, one_ours.p50_ms - one_direct.p50_ms));
  }
  const https_url = `https://127.0.0.1:${tls.MUSTER_HTTPS_PORT}`;
  const alone: Way = { name: 'Bun alone', url: await openHttpsPeer(opened, tls), host: '127.0.0.1' };
  const secure: Way = { name: 'Muster', url: https_url, host: '127.0.0.1' };
  const [bun_turn, muster_turn] = await measure('handshake', [alone, secure], CONCURRENT_HANDSHAKES);
  if (bun_turn && muster_turn) {
    goals.push(atLeast('TLS handshakes/s of Bun alone', 0.8, muster_turn.a_second / bun_turn.a_second));
  }
  goals.push(await measureFlood(program, ours));
  const hosts = [server, second].map(hostOf);
  const restart = async (before: Program) => {
    await before.stop('SIGTERM');
    return await start();
  };
  // New processes, because memory that was freed is used again.
  const second_program = await restart(program);
  goals.push(await measureIdle(second_program, { what: 'idle WebSockets', url: home.url, hosts }));
  const third_program = await restart(second_program);
  goals.push(await measureIdle(third_program, { what: 'idle WebSockets with TLS', url: https_url, hosts }));
  printGoals(goals);
});

/** Measures ways by turns. Returns the medians of each. */
async function measure(kind: Kind, ways: Way[], connections: number): Promise<Result[]> {
  const load = join(import.meta.dir, 'gateway/load.ts');
  return await measureWays({
    title: `${kind}, ${connections} at once`,
    ways,
    argumentsFor: ({ url, host }) => [load, kind, url, host, String(connections), String(SECONDS)],
  });
}

/** Opens many WebSockets through the gateway, which stay silent: to several servers, because each may open 8,192 files. */
async function measureIdle({ pid }: Program, { what, url, hosts }: { what: string; url: string; hosts: string[] }) {
  const before = residentBytes(pid);
  const sockets: WebSocket[] = [];
  for (let index = 0; index < IDLE_SOCKETS; index += 1) {
    sockets.push(await openSocket(url, hosts[index % hosts.length] ?? ''));
  }
  await Bun.sleep(2_000);
  const each = (residentBytes(pid) - before) / IDLE_SOCKETS;
  const open = sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length;
  if (open < IDLE_SOCKETS) throw new Error(`${IDLE_SOCKETS - open} of ${IDLE_SOCKETS} idle WebSockets were closed`);
  const closed = sockets.map((socket) => new Promise((resolve) => socket.addEventListener('close', resolve)));
  for (const socket of sockets) socket.close();
  await Promise.all(closed);
  return {
    what: `memory of each of ${IDLE_SOCKETS} ${what}`,
    limit: '<= 20.0 KiB',
    figure: `${show.kibibytes(each)} KiB`,
    is_met: each <= 20 * 1_024,
  };
}

/** Starts an https server by Bun alone. Returns its address. */
async function openHttpsPeer(
  opened: AsyncDisposableStack,
  { MUSTER_TLS_CERTIFICATE, MUSTER_TLS_KEY }: Record<'MUSTER_TLS_CERTIFICATE' | 'MUSTER_TLS_KEY', string>,
): Promise<string> {
  const script = join(import.meta.dir, 'gateway/https-peer.ts');
  const peer = Bun.spawn([process.execPath, script, MUSTER_TLS_CERTIFICATE, MUSTER_TLS_KEY], { stdout: 'pipe' });
  opened.defer(() => peer.kill());
  const { value } = await peer.stdout.getReader().read();
  return `https://127.0.0.1:${new TextDecoder().decode(value).trim()}/`;
}

/** Compares the API's times while a game sends 100 MB a second with its times before. */
async function measureFlood({ api }: Program, { url, host }: Way): Promise<Goal> {
  const probe = (name: string) =>
    measureAtRate(name, { count: PROBES, every_ms: PROBE_EVERY_MS }, () => api.ok('GET', '/health/ready', {}));
  await probe('warm-up');
  const calm = await probe('no game');
  const socket = await openSocket(url, host);
  let bytes = 0;
  socket.addEventListener('message', ({ data }) => {
    bytes += (data as ArrayBuffer).byteLength;
  });
  socket.send('flood');
  await Bun.sleep(1_000);
  bytes = 0;
  const flooded = await probe('100 MB/s');
  const rate = bytes / ((PROBES * PROBE_EVERY_MS) / 1_000);
  socket.close();
  if (rate < FLOOD_BYTES_PER_SECOND_MIN) throw new Error(`the game sent only ${(rate / 1_000_000).toFixed(0)} MB/s`);
  console.log(`\nThe game sent ${(rate / 1_000_000).toFixed(0)} MB/s meanwhile.`);
  return atMost('p99 of the API while a game sends 100 MB/s', 2, percentile(flooded, 0.99) / percentile(calm, 0.99));
}

async function openSocket(url: string, host: string): Promise<WebSocket> {
  const options = { headers: { host }, tls: { rejectUnauthorized: false } };
  const socket = new WebSocket(url.replace('http', 'ws'), options as unknown as string[]);
  socket.binaryType = 'arraybuffer';
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  return socket;
}

interface GameServer {
  /** The name of its port. */
  name: string;
  port: number;
}

function hostOf({ name }: GameServer): string {
  return `${name}.servers.localhost`;
}

async function startServers(program: Program): Promise<[GameServer, GameServer]> {
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const source = await Bun.file(join(import.meta.dir, 'gateway/server.ts')).text();
  const build = await uploadScript(program.api, game, new Bun.Transpiler({ loader: 'ts' }).transformSync(source));
  const body = await servers.bodyOf(build, {
    resources: { cpu: 2_000, memory: 512 },
    network: { ports: { web: { protocol: 'http' } } },
  });
  const start = async (): Promise<GameServer> => {
    const server_id: string = (await servers.create(body)).body.server.id;
    await servers.waitForLines(server_id, 1);
    return { name: `${server_id}-web`, port: (await servers.get(server_id)).network.ports.web.public_port as number };
  };
  return [await start(), await start()];
}

/** Starts nginx in front of the game server; undefined if it is not installed. */
async function openNginx(opened: AsyncDisposableStack, to_port: number): Promise<Way | undefined> {
  const nginx = Bun.which('nginx') ?? Bun.which('/usr/sbin/nginx');
  if (nginx === null) return undefined;
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-nginx-'));
  const port = findFreePort();
  await writeFile(
    join(directory, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${directory}/pid; error_log ${directory}/log;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/1; uwsgi_temp_path ${directory}/2; scgi_temp_path ${directory}/3;
  keepalive_requests 100000000;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream game { server 127.0.0.1:${to_port}; keepalive 128; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://game; proxy_http_version 1.1; proxy_set_header Host $host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_buffering off;
    }
  }
}`,
  );
  const process = Bun.spawn([nginx, '-p', directory, '-c', join(directory, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  opened.defer(async () => {
    process.kill();
    await process.exited;
    await rm(directory, { recursive: true, force: true });
  });
  await Bun.sleep(500);
  return { name: 'nginx', url: `http://127.0.0.1:${port}`, host: 'game.example.com' };
}
