import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { makeCertificate } from '../support/network/tls.ts';
import { readToEnd } from '../support/processes.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const PROXY = resolve(import.meta.dir, '../support/network/connect-proxy.ts');
const PROJECT = `game: proxied
build: {path: server.ts}
site: public
matchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}
`;
/** A host name that only the proxy resolves. */
const NAME = 'play.proxied.example';
const PORT = findFreePort();
const ADDRESS = `https://${NAME}:${PORT}`;

const certificates = await mkdtemp(join(tmpdir(), 'muster-proxies-'));
const { certificate, key } = await makeCertificate([NAME]);
await writeFile(join(certificates, 'own.crt'), certificate);
await writeFile(join(certificates, 'own.key'), key);
const muster = shareService({
  MUSTER_TLS_CERTIFICATE: join(certificates, 'own.crt'),
  MUSTER_TLS_KEY: join(certificates, 'own.key'),
  MUSTER_HTTPS_PORT: String(PORT),
  MUSTER_HTTP_PORT: String(findFreePort()),
  MUSTER_PUBLIC_URL: ADDRESS,
});

/** The proxy, and the targets of its connections so far. */
let proxy: { url: string; targets: string[]; stop(): Promise<unknown> };
let folder: Awaited<ReturnType<typeof makeProjectFolder>>;
beforeAll(async () => {
  const child = Bun.spawn([process.execPath, PROXY], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' });
  const lines: string[] = [];
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stdout) lines.push(...decoder.decode(bytes).trimEnd().split('\n'));
  })();
  const port = await waitFor(() => lines.shift(), 'the proxy to listen');
  const stop = async () => {
    child.kill();
    await Promise.all([child.exited, reading]);
  };
  proxy = { url: `http://127.0.0.1:${port}`, targets: lines, stop };
  const files = { 'server.ts': ROOM_SOURCE, 'public/index.html': 'the game', 'muster.yaml': PROJECT };
  folder = await makeProjectFolder(muster, certificates, { name: 'proxied', files });
}, 300_000);
afterAll(async () => {
  await proxy.stop();
  await rm(certificates, { recursive: true, force: true });
});

/** Runs a command behind the proxy. */
async function run(args: string[], variables: Record<string, string> = {}) {
  const trust = { MUSTER_URL: ADDRESS, NODE_EXTRA_CA_CERTS: join(certificates, 'own.crt') };
  const child = folder.start(args, { ...trust, HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, ...variables });
  return await readToEnd(child);
}

test('proxies: deploy, logs -f, bots and doctor work behind a proxy that supports only CONNECT', async () => {
  expect(await run(['deploy'])).toMatchObject({ exit_code: 0, stderr: expect.stringContaining('was ready') });
  const bots = await run(['bots', '2', '--for', '6s', '--json', '--game', 'proxied']);
  expect([bots.exit_code, JSON.parse(bots.stdout)]).toEqual([0, expect.objectContaining({ faults: [], refusals: [] })]);
  expect(JSON.parse(bots.stdout).connected).toBeGreaterThan(0);
  // The players have left, so the lobby and its server end. The newest server may be of a find that ended with its bot.
  const { servers } = JSON.parse((await run(['servers', '--all', '--json', '--game', 'proxied'])).stdout);
  const logs = await run(['logs', '-f', '--server', servers.at(-1).id, '--game', 'proxied']);
  expect(logs).toMatchObject({ exit_code: 0, stdout: expect.stringContaining('has come') });
  const { findings } = JSON.parse((await run(['doctor', '--json'])).stdout);
  expect(findings.filter(({ what }: { what: string }) => what.includes('ertificate'))).toEqual([]);
  const names = new Set(proxy.targets.map((target) => target.replace(/:\d+$/, '')));
  expect([...names]).toEqual([NAME]);
}, 300_000);

test('proxies: NO_PROXY names hosts that are reached without the proxy', async () => {
  const count = proxy.targets.length;
  const direct = await run(['status', '--game', 'proxied'], { NO_PROXY: `.elsewhere.example,${NAME}` });
  expect([direct.exit_code, direct.stderr]).toEqual([1, expect.stringContaining('cannot be reached')]);
  expect(proxy.targets).toHaveLength(count);
}, 300_000);
