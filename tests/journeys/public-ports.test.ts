import { afterAll, expect, test } from 'bun:test';
import { find, makeControlledGame } from '../support/game-server.ts';
import { WEB_SERVER } from '../support/gateway.ts';
import { openNetwork, WITHOUT_NETWORK } from '../support/network/network.ts';
import { openTls, writeCertificate } from '../support/network/tls.ts';
import { openPebble, WITHOUT_PEBBLE } from '../support/pebble.ts';
import { makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

const WITHOUT = WITHOUT_NETWORK ?? WITHOUT_PEBBLE;
const [PLAY, GAMES] = ['play.example.com', 'games.example.com'];

afterAll(() => {
  if (WITHOUT !== undefined) console.log(`Not tried, because ${WITHOUT}: the ports 80 and 443.`);
});

/** Opens a WebSocket at a public address, sends a text, and returns the answer. The name need not resolve. */
async function play(url: string, { hostname, ca }: { hostname: string; ca: string }): Promise<string> {
  const options = { headers: { host: hostname }, tls: { ca, serverName: hostname } };
  const socket = new WebSocket(url, options as unknown as string[]);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.addEventListener('error', () => reject(new Error(`no WebSocket at ${url}`)));
  socket.addEventListener('message', ({ data }) => {
    if (String(data).startsWith('hello')) socket.send('a move');
    else resolve(String(data));
  });
  const answer = await promise;
  socket.close();
  return answer;
}

const WAYS = [
  { certificates: 'files, and an authority that asks at 80', has_authority: true },
  { certificates: 'files alone', has_authority: false },
];

test.skipIf(WITHOUT !== undefined).each(WAYS)(
  'public ports: without any setting of a port, http is 80 and https is 443, with certificates of $certificates',
  async ({ has_authority }) => {
    await using network = await openNetwork();
    const { address } = network;
    await using opened = new AsyncDisposableStack();
    const authority = { address: network.outer_address, host_address: address, http_port: 80 };
    const pebble = has_authority ? opened.use(await openPebble(authority)) : undefined;
    const { certificate: ca, files } = await writeCertificate(has_authority ? [`*.${GAMES}`] : [`*.${GAMES}`, PLAY]);
    const domain = { MUSTER_DEMO: 'off', MUSTER_SERVERS_DOMAIN: GAMES };
    await using home = await makeHome(domain, { network, has_prepared_database: true });
    // Uploads go to the public address, whose name does not resolve here.
    const first = await home.start({ settings: { MUSTER_PUBLIC_URL: home.url } });
    const ports = { web: { port: 80, protocol: 'https' }, plain: { port: 80, protocol: 'http' } };
    const source = WEB_SERVER.replace(
      "console.log('listening');",
      `Bun.serve({ port: Number(process.env.PORT_plain), hostname: '0.0.0.0', fetch: (request, server) => { server.upgrade(request); }, websocket: { open: (socket) => void socket.send('hello'), message: (socket, data) => void socket.send(data) } });
      const { SERVICE_API_ENDPOINT, SERVICE_TOKEN } = process.env;
      await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers: { authorization: 'Bearer ' + SERVICE_TOKEN } });`,
    );
    const game = await makeControlledGame(first, { ports, source });
    await first.stop('SIGTERM');

    const settings: Record<string, string> = pebble
      ? { MUSTER_ACME_HOSTS: PLAY, MUSTER_ACME_DIRECTORY: pebble.directory, MUSTER_ACME_CA: pebble.ca_file }
      : { MUSTER_PUBLIC_URL: `https://${PLAY}` };
    const program = await home.start({ settings: { ...files, ...settings } });
    const root = pebble ? await pebble.readRoot() : ca;
    const api = await waitFor(
      () => openTls(443, PLAY, { address, ca: root }).catch(() => undefined),
      'the certificate',
    );
    let answer = '';
    api.on('data', (bytes) => {
      answer += String(bytes);
    });
    api.write(`GET /health/live HTTP/1.1\r\nHost: ${PLAY}\r\nConnection: close\r\n\r\n`);
    await waitFor(() => answer.startsWith('HTTP/1.1 200'), 'the answer at 443');
    const redirected = await fetch(`http://${address}/health/live`, { headers: { host: PLAY }, redirect: 'manual' });
    expect([redirected.status, redirected.headers.get('location')]).toEqual([308, `https://${PLAY}/health/live`]);

    const { body } = await find(program, game);
    const { web, plain } = body.ports;
    expect(web).toEqual({ hostname: web.hostname, host: `${web.hostname}:443`, port: 443, is_tls: true });
    expect(plain).toEqual({ hostname: plain.hostname, host: `${plain.hostname}:80`, port: 80, is_tls: false });
    expect([web.hostname, plain.hostname].every((name: string) => name.endsWith(`.${GAMES}`))).toBe(true);
    expect(web.hostname).not.toBe(plain.hostname);
    expect(await play(`wss://${address}/socket`, { hostname: web.hostname, ca })).toBe('a move');
    expect(await play(`ws://${address}/socket`, { hostname: plain.hostname, ca })).toBe('a move');
    expect(await program.stop('SIGINT')).toBe(0);
  },
  300_000,
);
