import { expect, test } from 'bun:test';
import { createRelays } from '../../../src/features/gateway/relays/relays.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { echoByTcp } from '../../support/relayed.ts';

const HOST = '127.0.0.1';
const OPTIONS = {
  server_host: HOST,
  servers_domain: 'servers.localhost',
  certificates: { current: () => new Map() },
  limits: { is_on: true, scale: 1 },
  traffic: createTraffic({ limits: { is_on: true, scale: 1 }, bytes_a_minute: { of_server: 1e9, of_address: 1e9 } }),
  proxy_protocol: undefined,
  endServersOnPort: async () => 0,
};

function startEcho() {
  const socket = { data: (own: Bun.Socket<undefined>, bytes: Buffer) => void own.write(bytes) };
  const listener = Bun.listen({ hostname: HOST, port: 0, socket });
  return { port: listener.port, [Symbol.dispose]: () => listener.stop(true) };
}

/** A server with a relay for its port. */
const serverAt = (public_port: number, relay_port: number, server_id = crypto.randomUUID()) => ({
  game_id: 'a game',
  server_id,
  ports: { game: { protocol: 'tcp', routing: 'game_guard', public_port, relay_port } as const },
});

test('relays: of a server with one port in use by another program, none is open until that port is free; one report', async () => {
  using echo = startEcho();
  const events: ServiceEvent[] = [];
  using relays = createRelays({ ...OPTIONS, events: { emit: (event) => void events.push(event) } });
  const [first, second] = [findFreePort(), findFreePort()];
  const taker = Bun.listen({ hostname: HOST, port: second, socket: { data() {} } });
  const server = serverAt(echo.port, first);
  const both = { ...server, ports: { ...server.ports, other: serverAt(echo.port, second).ports.game } };
  for (let time = 0; time < 2; time += 1) expect([...(await relays.openOnly([both]))]).toEqual([both.server_id]);
  expect(events).toMatchObject([{ event: 'relays_not_opened', server_id: both.server_id, ports: [first, second] }]);
  expect(await rejectionOf(Error, echoByTcp({ hostname: HOST, port: first }, 'hello'))).toMatchObject({
    code: 'ECONNREFUSED',
  });
  taker.stop(true);
  expect((await relays.openOnly([both])).size).toBe(0);
  for (const port of [first, second]) expect(await echoByTcp({ hostname: HOST, port }, 'hello')).toBe('hello');
});

test('relays: those of other servers stay open when a server ends', async () => {
  using echo = startEcho();
  using relays = createRelays({ ...OPTIONS, events: { emit() {} } });
  const [ending, other] = [findFreePort(), findFreePort()];
  const staying = serverAt(echo.port, other);
  await relays.openOnly([serverAt(echo.port, ending), staying]);
  let answer = '';
  const player = await Bun.connect({
    hostname: HOST,
    port: other,
    socket: {
      data(_, bytes) {
        answer = bytes.toString();
      },
    },
  });
  await relays.openOnly([staying]);
  expect(await rejectionOf(Error, echoByTcp({ hostname: HOST, port: ending }, 'hello'))).toMatchObject({
    code: 'ECONNREFUSED',
  });
  player.write('still here');
  expect(await echoByTcp({ hostname: HOST, port: other }, 'new')).toBe('new');
  expect(answer).toBe('still here');
  player.end();
});
