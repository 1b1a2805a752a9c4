import { beforeAll, describe, expect, test } from 'bun:test';
import { find, join, makeControlledGame } from '../support/game-server.ts';
import { SERVERS_DOMAIN } from '../support/gateway.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { writeCertificate } from '../support/network/tls.ts';
import { shareService } from '../support/suite.ts';

/** A lobby server that answers the label of each of its ports, with its lobby, by http and by WebSocket. */
const SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, SERVICE_LOBBY_ID } = process.env;
for (const [name, port] of Object.entries(process.env)) {
  const [, label] = /^PORT_([a-z]+)$/.exec(name) ?? [];
  const answer = label + ' of ' + SERVICE_LOBBY_ID;
  if (label) Bun.serve({
    port: Number(port),
    hostname: '0.0.0.0',
    fetch: (request, server) => server.upgrade(request) ? undefined : new Response(answer),
    websocket: { open: (socket) => void socket.send(answer), message() {} },
  });
}
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

// 80 and 443 themselves are tried in a network of their own: tests/journeys/public-ports.test.ts.
const [https_port, http_port] = [findFreePort(), findFreePort()];
const { files } = await writeCertificate([`*.${SERVERS_DOMAIN}`]);
const muster = shareService({
  ...files,
  MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN,
  MUSTER_HTTPS_PORT: String(https_port),
  MUSTER_HTTP_PORT: String(http_port),
});

const ROWS = [
  { label: 'web', config: { port: 8_000, protocol: 'http' }, port: http_port, is_tls: false },
  { label: 'site', config: { port: 8_001, protocol: 'http', proxy: 'game_guard' }, port: http_port, is_tls: false },
  { label: 'safe', config: { port: 8_000, protocol: 'https' }, port: https_port, is_tls: true },
  { label: 'secure', config: { port: 8_002, protocol: 'https' }, port: https_port, is_tls: true },
  // The default.
  { label: 'unsaid', config: { port: 8_003 }, port: https_port, is_tls: true },
] as const;

interface Answered {
  hostname: string;
  host: string;
  port: number;
  is_tls: boolean;
}

describe('specification: http and https ports behind the gateway', () => {
  const lobbies: { lobby_id: string; ports: Record<string, Answered> }[] = [];
  beforeAll(async () => {
    const game_modes = { default: { actions: { create: { enabled: true } } } };
    const ports = Object.fromEntries(ROWS.map(({ label, config }) => [label, config]));
    const game = await makeControlledGame(muster, { game_modes, ports, source: SOURCE });
    const found = (await find(muster, game)).body;
    expect((await join(muster, game, found.lobby.lobby_id)).body.ports).toEqual(found.ports);
    const created = await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
    for (const { lobby, ports: answered } of [found, created.body]) {
      lobbies.push({ lobby_id: lobby.lobby_id, ports: answered });
    }
  }, 300_000);

  test.each(ROWS)(
    '$label: one port for all of the protocol, not the configured one; the host name leads to the port of the lobby',
    async ({ label, config, port, is_tls }) => {
      for (const { lobby_id, ports } of lobbies) {
        const { hostname = '', ...answered } = ports[label] ?? {};
        expect(answered).toEqual({ host: `${hostname}:${port}`, port, is_tls });
        expect(port).not.toBe(config.port);
        const scheme = is_tls ? 'https' : 'http';
        const options = { headers: { host: hostname }, tls: { rejectUnauthorized: false } };
        const answer = await fetch(`${scheme}://127.0.0.1:${port}/`, options);
        expect(await answer.text()).toBe(`${label} of ${lobby_id}`);
        const socket = new WebSocket(`${is_tls ? 'wss' : 'ws'}://127.0.0.1:${port}/`, options as unknown as string[]);
        const hello = await new Promise((resolve, reject) => {
          socket.addEventListener('message', ({ data }) => resolve(data));
          socket.addEventListener('error', reject);
        });
        expect(hello).toBe(`${label} of ${lobby_id}`);
        socket.close();
      }
    },
  );

  test('every port of every lobby has a host name of its own', () => {
    const names = lobbies.flatMap(({ ports }) => Object.values(ports).map(({ hostname }) => hostname));
    expect(new Set(names).size).toBe(ROWS.length * 2);
  });

  test('TLS and non-TLS ports cannot be mixed: neither port speaks the other protocol', async () => {
    const options = { tls: { rejectUnauthorized: false } };
    await expect(fetch(`http://127.0.0.1:${https_port}/`, options)).rejects.toThrow();
    await expect(fetch(`https://127.0.0.1:${http_port}/`, options)).rejects.toThrow();
  });
});
