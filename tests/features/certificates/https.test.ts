import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../../src/config.ts';
import { StartError } from '../../../src/platform/errors.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { fingerprintAt, makeCertificate, openTls } from '../../support/network/tls.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';
import { openSocket } from '../../support/watch/socket.ts';

let folder: string;
let muster: TestService;
const [https_port, http_port] = [findFreePort(), findFreePort()];

/** Replaces a certificate as programs do: each file at once, the key first. */
async function replace(name: string, names: string[]): Promise<void> {
  const pair = await makeCertificate(names);
  for (const [suffix, text] of [
    ['key', pair.key],
    ['crt', pair.certificate],
  ] as const) {
    await writeFile(join(folder, `${name}.${suffix}.new`), text);
    await rename(join(folder, `${name}.${suffix}.new`), join(folder, `${name}.${suffix}`));
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-certificates-'));
  await replace('api', ['localhost']);
  await replace('sites', ['*.sites.example.com']);
  muster = await openTestService({
    MUSTER_TLS_CERTIFICATE: `${folder}/api.crt, ${folder}/sites.crt`,
    MUSTER_TLS_KEY: `${folder}/api.key,${folder}/sites.key`,
    MUSTER_HTTPS_PORT: String(https_port),
    MUSTER_HTTP_PORT: String(http_port),
    MUSTER_SITES_DOMAIN: 'sites.example.com',
  });
});

afterAll(async () => {
  await muster[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const insecure = { tls: { rejectUnauthorized: false } };
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`https://localhost:${https_port}${path}`, { ...insecure, headers });

test('https: the API answers as at its own port', async () => {
  const answer = await get('/health/ready');
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ status: 'ok' });
  const refused = await get('/matchmaker/regions?x=1');
  expect([refused.status, (await refused.json()).code]).toEqual([401, 'API_UNAUTHORIZED']);
  const missing = await get('/health/nothing');
  expect([missing.status, (await missing.json()).code]).toEqual([404, 'API_NOT_FOUND']);
});

test('https: a site answers at its own host', async () => {
  const answer = await get('/', { host: 'game.sites.example.com' });
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('site')]);
});

test('https: a client gets the certificate of the host that it names', async () => {
  const [api, site, other] = await Promise.all(
    ['localhost', 'game.sites.example.com', 'elsewhere.example.com'].map((host) => fingerprintAt(https_port, host)),
  );
  expect(site).not.toBe(api);
  expect(other).toBe(api);
});

test('https: a replaced certificate is served at once, and open connections go on', async () => {
  const url = `https://localhost:${https_port}`;
  using socket = openSocket(url, { token: muster.administrator_token, ...insecure });
  await socket.subscribe('before', '/cloud/games');
  const before = await fingerprintAt(https_port, 'localhost');
  await replace('api', ['localhost', '127.0.0.1']);
  // A connection that is opened while the certificate is replaced may be refused.
  const fingerprint = () => fingerprintAt(https_port, 'localhost').catch(() => before);
  await waitFor(async () => (await fingerprint()) !== before, 'the new certificate');
  await socket.subscribe('after', '/identity/identities/self/profile');
  expect(socket.socket.readyState).toBe(WebSocket.OPEN);
}, 300_000);

test('https: a certificate that does not fit its key changes nothing, and the log says why', async () => {
  const before = await fingerprintAt(https_port, 'game.sites.example.com');
  await writeFile(join(folder, 'sites.key'), (await makeCertificate(['x.example.com'])).key);
  const logged = await waitFor(
    () => muster.events.find((event) => event.event === 'certificate_not_read'),
    'the event about the file',
  );
  expect(logged).toMatchObject({ reason: expect.stringContaining('belongs to another private key') });
  expect(await fingerprintAt(https_port, 'game.sites.example.com')).toBe(before);
}, 300_000);

test('http: a host with a certificate is redirected to https', async () => {
  const ask = async (host: string) => {
    const answer = await fetch(`http://127.0.0.1:${http_port}/health/live?x=%20`, {
      headers: { host },
      redirect: 'manual',
    });
    return [answer.status, answer.headers.get('location')];
  };
  expect(await ask('localhost')).toEqual([308, `https://localhost:${https_port}/health/live?x=%20`]);
  expect(await ask('a.sites.example.com')).toEqual([
    308,
    `https://a.sites.example.com:${https_port}/health/live?x=%20`,
  ]);
  // Deeper names and other hosts have no certificate, so they are served here.
  expect(await ask('b.a.sites.example.com')).toEqual([404, null]);
  expect(await ask('evil.example.com')).toEqual([200, null]);
});

test('http: a redirect ends the connection of a request whose body has not come', async () => {
  const head = ['POST /health/live HTTP/1.1', 'Host: localhost', 'Content-Length: 60000'];
  const { status, headers } = await sendRaw(`http://127.0.0.1:${http_port}`, `${head.join('\r\n')}\r\n\r\n`, 'a');
  expect([status, headers.get('connection')]).toEqual([308, 'close']);
});

test('https: a client without TLS gets no answer', async () => {
  const answer = await fetch(`http://127.0.0.1:${https_port}/health/live`).catch(() => 'failed');
  expect(answer).toBe('failed');
});

test('https: a request of half a handshake delays no other', async () => {
  const held = await Bun.connect({ hostname: '127.0.0.1', port: https_port, socket: { data() {} } });
  held.write(new Uint8Array([22, 3, 1]));
  const socket = await openTls(https_port, 'localhost');
  socket.destroy();
  held.end();
});

test.each([
  [{ MUSTER_HTTPS_PORT: '8443' }, 'MUSTER_HTTPS_PORT is set, but there is no certificate'],
  [{ MUSTER_HTTP_PORT: '8081' }, 'MUSTER_HTTP_PORT redirects to https, but there is no certificate'],
  [{ MUSTER_TLS_CERTIFICATE: 'a.pem,b.pem', MUSTER_TLS_KEY: 'a.key' }, 'names 2 files and MUSTER_TLS_KEY 1'],
  [{ MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: '8080' }, 'MUSTER_PORT and MUSTER_HTTPS_PORT are both 8080'],
])('https: settings %j are refused', (settings, reason) => {
  expect(() => readConfig(settings)).toThrow(reason);
});

const FILES = { MUSTER_TLS_CERTIFICATE: 'a.pem', MUSTER_TLS_KEY: 'a.key' };
const ACME = { MUSTER_ACME_HOSTS: 'play.example.com' };
test.each<[Record<string, string>, number | undefined]>([
  [FILES, 80],
  [ACME, 80],
  [{ MUSTER_TLS_LOCAL: 'on' }, 80],
  [{ ...FILES, MUSTER_HTTP_PORT: '8081' }, 8_081],
  [{ ...FILES, MUSTER_HTTPS_PORT: '8443' }, undefined],
  [{ ...FILES, MUSTER_PORT: '80' }, undefined],
  [{ ...ACME, MUSTER_HTTPS_PORT: '8443' }, 80],
  [{}, undefined],
])('https: with the settings %j, the port for http is %p', (settings, port) => {
  expect(readConfig(settings).tls.http_port).toBe(port);
});

test('https: the start is refused with files that cannot be used', async () => {
  const file = join(folder, 'missing.pem');
  const config = { ...muster.config.tls.certificates, files: [{ certificate_file: file, key_file: file }] };
  const refused = await rejectionOf(
    StartError,
    openTestService({ MUSTER_TLS_CERTIFICATE: file, MUSTER_TLS_KEY: file, MUSTER_HTTPS_PORT: String(findFreePort()) }),
  );
  expect(refused.message).toContain(`The file ${config.files[0]?.certificate_file} cannot be read`);
  expect(refused.message).toContain('check MUSTER_TLS_CERTIFICATE and MUSTER_TLS_KEY');
});

test('https: the start is refused if the port is taken', async () => {
  const other_server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
  const refused = await rejectionOf(
    StartError,
    openTestService({ MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(other_server.port) }),
  );
  expect(refused.message).toContain(`Port ${other_server.port} is taken by another program`);
  await other_server.stop(true);
});
