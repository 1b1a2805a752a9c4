import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import { createOutbound } from '../../../src/platform/outbound/outbound.ts';
import { AUTHORITY, CERTIFICATE, CERTIFICATE_KEY } from '../../support/certificates.ts';
import { answerText, answerWith, listenAt } from '../../support/network/listener.ts';
import { kindOf } from '../../support/outbound-failures.ts';

const REQUEST = { headers: {}, body: '{}', timeout_ms: 10_000, answer_bytes_max: 0 };
const requests: { server_name: TLSSocket['servername']; received: string }[] = [];
const server = createServer({ key: CERTIFICATE_KEY, cert: CERTIFICATE }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on('data', (piece) => {
    requests.push({ server_name: socket.servername, received: piece.toString() });
    socket.end(answerText(200));
  });
});
let port: number;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens at no port');
  port = address.port;
});
afterAll(() => server.close());

const outbound = createOutbound({
  allowed_private: ['127.0.0.0/8'],
  resolve: async () => ['127.0.0.2'],
  certificate_authorities: AUTHORITY,
});

describe('outbound over https', () => {
  test('connects to the checked address and verifies the certificate for the name', async () => {
    expect((await outbound.post(`https://verify.example:${port}/x`, REQUEST)).status).toBe(200);
    expect(requests.at(-1)?.server_name).toBe('verify.example');
    expect(requests.at(-1)?.received).toContain(`host: verify.example:${port}\r\n`);
  });

  test('accepts a certificate for an address', async () => {
    expect((await outbound.post(`https://127.0.0.2:${port}/`, REQUEST)).status).toBe(200);
  });

  test('refuses a certificate for another name before it sends anything', async () => {
    const before = requests.length;
    expect(await kindOf(outbound.post(`https://other.example:${port}/`, REQUEST))).toBe('unreachable');
    expect(requests.length).toBe(before);
  });

  test('refuses a certificate without a trusted issuer, whatever the environment says', async () => {
    const before = requests.length;
    expect(await sendElsewhere({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, `https://verify.example:${port}/`)).toBe(
      'unreachable',
    );
    expect(requests.length).toBe(before);
  });

  test('limits the time of the TLS handshake', async () => {
    await using silent = await listenAt('127.0.0.2');
    const sent = outbound.post(`https://verify.example:${silent.port}/`, { ...REQUEST, timeout_ms: 100 });
    expect(await kindOf(sent)).toBe('timeout');
  });
});

test('outbound over https: does not use proxies of the environment, which would bypass the check of addresses', async () => {
  await using proxy = await listenAt('127.0.0.4', (socket) => void socket.end(answerText(200)));
  await using plain = await listenAt('127.0.0.2', answerWith(answerText(204)));
  const address = `http://127.0.0.4:${proxy.port}`;
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];
  const environment = { ...Object.fromEntries(names.map((name) => [name, address])), NODE_USE_ENV_PROXY: '1' };
  expect(await sendElsewhere(environment, `http://verify.example:${plain.port}/`)).toBe('{"status":204,"text":""}');
  expect(await sendElsewhere(environment, `https://verify.example:${port}/`, AUTHORITY)).toBe(
    '{"status":200,"text":""}',
  );
  expect(proxy.connections).toBe(0);
});

/** Returns the outcome of a request that a process with this environment sends. */
async function sendElsewhere(environment: Record<string, string>, url: string, authority?: string): Promise<string> {
  const sender = join(import.meta.dir, '../../support/outbound-sender.ts');
  const command = [process.execPath, sender, url, '127.0.0.2', ...(authority === undefined ? [] : [authority])];
  const child = Bun.spawn(command, { env: environment, stdout: 'pipe', stderr: 'ignore' });
  return (await new Response(child.stdout).text()).trim();
}
