import { beforeAll, describe, expect, test } from 'bun:test';
import { find, join, makeControlledGame } from '../support/game-server.ts';
import { certifyLocalhost, echoBy, echoByTcp, openTlsPlayer, openUdpPlayer } from '../support/relayed.ts';
import { shareService } from '../support/suite.ts';

/** A lobby server that answers what it gets at each of its ports. */
const SOURCE = `
const hostname = '0.0.0.0';
const socket = { data: (socket, bytes) => void socket.write(bytes) };
const datagrams = { data: (socket, bytes, port, address) => { try { socket.send(bytes, port, address); } catch {} }, error() {} };
for (const [name, port] of Object.entries(process.env)) {
  const [, kind] = /^PORT_(?:RANGE_MIN_)?([a-z]+)/.exec(name) ?? [];
  if (kind?.startsWith('tcp')) Bun.listen({ hostname, port: Number(port), socket });
  else if (kind?.startsWith('udp')) await Bun.udpSocket({ hostname, port: Number(port), socket: datagrams });
}
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN } = process.env;
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

const { certificate, settings } = await certifyLocalhost();
// Part of the default range, which only churn.test.ts uses too, apart from this and the ranges below.
const muster = shareService({ ...settings, MUSTER_SERVER_PORTS: '26000-26999' });

interface Answered {
  hostname: string;
  host: string | null;
  port: number | null;
  port_range?: { min: number; max: number };
  is_tls: boolean;
}

/** A port of a version, and what the specification says of it in answers. */
const SINGLE = [
  { label: 'tcp', config: { port: 7_777, protocol: 'tcp' }, is_tls: false },
  { label: 'tcp-two', config: { port: 7_778, protocol: 'tcp', proxy: 'game_guard' }, is_tls: false },
  { label: 'tcp-tls', config: { port: 7_777, protocol: 'tcp_tls' }, is_tls: true },
  { label: 'tcp-tls-two', config: { port: 443, protocol: 'tcp_tls' }, is_tls: true },
  { label: 'udp', config: { port: 7_777, protocol: 'udp' }, is_tls: false },
] as const;
const RANGES = [
  { label: 'tcp', config: { port_range: { min: 31_000, max: 31_009 }, protocol: 'tcp', proxy: 'none' } },
  { label: 'udp', config: { port_range: { min: 31_010, max: 31_019 }, protocol: 'udp', proxy: 'none' } },
] as const;

const toPorts = (rows: readonly { label: string; config: object }[]) =>
  Object.fromEntries(rows.map(({ label, config }) => [label, config]));

describe('specification: ports behind the gateway', () => {
  let ports: Record<string, Answered>;
  beforeAll(async () => {
    const game_modes = { default: { actions: { create: { enabled: true } } } };
    const game = await makeControlledGame(muster, { game_modes, ports: toPorts(SINGLE), source: SOURCE });
    const found = (await find(muster, game)).body;
    ports = found.ports;
    expect((await join(muster, game, found.lobby.lobby_id)).body.ports).toEqual(ports);
    const created = await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
    expect(Object.keys(created.body.ports)).toEqual(Object.keys(ports));
  }, 300_000);

  test.each(SINGLE)(
    '$label: one between 26000 and 31999 that is not the configured one, and leads to it',
    async (row) => {
      const { label, config, is_tls } = row;
      const answered = ports[label];
      const { hostname = '', port } = answered ?? {};
      expect(answered).toEqual({ hostname, host: `${hostname}:${port}`, port: expect.any(Number), is_tls });
      expect(port).toBeGreaterThanOrEqual(26_000);
      expect(port).toBeLessThanOrEqual(31_999);
      expect(port).not.toBe(config.port);
      const named = { hostname, port: port ?? 0 };
      if (config.protocol === 'udp') {
        using player = await openUdpPlayer(named);
        await player.echo(label);
      } else if (is_tls) {
        const player = await openTlsPlayer(named, certificate);
        await echoBy(player, label);
        player.destroy();
      } else {
        expect(await echoByTcp(named, label)).toBe(label);
      }
    },
  );

  test('TLS and non-TLS ports cannot be mixed: no number is of two ports', () => {
    expect(new Set(Object.values(ports).map(({ port }) => port)).size).toBe(SINGLE.length);
  });
});

describe('specification: port ranges are in network mode host, without the gateway', () => {
  let ports: Record<string, Answered>;
  beforeAll(async () => {
    const options = { ports: toPorts(RANGES), network_mode: 'host', source: SOURCE };
    ports = (await find(muster, await makeControlledGame(muster, options))).body.ports;
  }, 300_000);

  test.each(RANGES)(
    '$label: host and port are null, the range is inclusive and the one of the version',
    async (row) => {
      const { label, config } = row;
      const { port_range } = config;
      const answered = ports[label];
      expect(answered).toEqual({ hostname: 'localhost', host: null, port: null, port_range, is_tls: false });
      const named = { hostname: 'localhost', port: port_range.min };
      if (config.protocol === 'tcp') {
        expect(await echoByTcp(named, label)).toBe(label);
      } else {
        using player = await openUdpPlayer(named);
        await player.echo(label);
      }
    },
  );
});
