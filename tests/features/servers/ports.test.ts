import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { claimPorts } from '../../../src/commands/test/ports.ts';
import { findFreePorts } from '../../../src/features/servers/placement/free-ports.ts';
import { makeGame } from '../../support/game.ts';
import { claimTestPorts, findFreePort } from '../../support/network/test-ports.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const NONE: ReadonlySet<number> = new Set();
const listen = (hostname: string, port: number) => Bun.listen({ hostname, port, socket: { data() {} } });

describe('free ports of a machine', () => {
  const receive = async (hostname: string, port: number) => {
    const socket = await Bun.udpSocket({ hostname, port });
    return { stop: () => socket.close() };
  };
  const TAKERS = [
    ['a program that listens on all addresses', '0.0.0.0', listen],
    ['one that listens on loopback only', '127.0.0.1', listen],
    ['one that listens on all addresses of both families', '::', listen],
    ['one that listens on the loopback address of IPv6 only', '::1', listen],
    ['one that receives datagrams', '0.0.0.0', receive],
    ['one that receives datagrams on the loopback address of IPv6 only', '::1', receive],
    ['one that receives datagrams on loopback only', '127.0.0.1', receive],
  ] as const;
  test.each(TAKERS)('are not those of %s', async (_, hostname, open) => {
    const range = findRange(1);
    const taker = await open(hostname, range.min);
    expect(await findFreePorts(range, NONE, 1)).toBeUndefined();
    taker.stop();
    expect(await findFreePorts(range, NONE, 1)).toEqual([range.min]);
  });

  test('are distinct and available, and if there are too few, there are none', async () => {
    const { min, max } = findRange(6);
    const unavailable = new Set([min + 1, max]);
    const range = { min, max };
    for (let time = 0; time < 10; time += 1) {
      const found = await findFreePorts(range, unavailable, 4);
      expect(found?.sort((one, other) => one - other)).toEqual([min, min + 2, min + 3, min + 4]);
    }
    expect(await findFreePorts(range, unavailable, 5)).toBeUndefined();
    expect(await findFreePorts(range, unavailable, 0)).toEqual([]);
  });
});

test('ports: two tests have different ones', async () => {
  using one = await claimTestPorts();
  using other = await claimTestPorts();
  expect(one.range.max < other.range.min || other.range.max < one.range.min).toBe(true);
  for (const { min, max } of [one.range, other.range]) {
    expect(max - min).toBeGreaterThan(400);
    expect(findFreePort()).not.toBeWithin(min - 2, max + 1);
  }
});

test.each(['127.0.0.1', '127.0.0.2', '::1'])(
  'ports: a throwaway service gets none that another program has at %s',
  (hostname) => {
    const { service_port, ...block } = claimPorts();
    block[Symbol.dispose]();
    using _taken = listen(hostname, service_port);
    // The same block, unless another run of the tests has claimed it meanwhile.
    using again = claimPorts();
    expect(again.service_port).not.toBe(service_port);
  },
);

describe('a service with few ports', () => {
  const PORTS = 6;
  let muster: TestService;
  let foreign: ReturnType<typeof listen>;
  let servers: ReturnType<typeof serversOf>;
  let body: object;
  beforeAll(async () => {
    const { min, max } = findRange(PORTS);
    foreign = listen('0.0.0.0', min + 2);
    muster = await openTestService({ MUSTER_SERVER_PORTS: `${min}-${max}` });
    const game = await makeGame(muster.api, muster.administrator_token);
    servers = serversOf(muster, game);
    const build = await uploadShell(muster.api, game, 'echo $PORT_game; exec sleep 600');
    body = await servers.bodyOf(build, { network: { ports: { game: { protocol: 'udp', routing: { host: {} } } } } });
  }, 300_000);
  afterAll(async () => {
    await muster[Symbol.asyncDispose]();
    foreign.stop(true);
  }, 300_000);

  const create = async (): Promise<string> => (await servers.create(body)).body.server.id;
  /** Returns the servers of the game that run, with their ports. */
  async function readAssigned(): Promise<{ server_id: string; port: number }[]> {
    const all = await Promise.all(created.map(servers.get));
    return all.flatMap(({ id, started_at, destroyed_at, network }) =>
      started_at === undefined || destroyed_at !== undefined
        ? []
        : [{ server_id: id, port: network.ports.game.public_port }],
    );
  }
  /** Resolves once the machine has placed whatever it can. */
  const waitForPlacement = async () => servers.waitForStart(await servers.run('exec sleep 600'));
  let created: string[];

  test('gives each free port to one server, lets the other servers wait, and says why', async () => {
    created = await Promise.all(Array.from({ length: PORTS + 2 }, create));
    const assigned = await waitFor(async () => {
      const some = await readAssigned();
      return some.length === PORTS - 1 && some;
    }, 'servers to have all ports');
    await waitForPlacement();
    const { min, max } = muster.config.servers.server_ports;
    const free = Array.from({ length: max - min + 1 }, (_, index) => min + index).filter(
      (port) => port !== foreign.port,
    );
    expect(assigned.map(({ port }) => port).sort()).toEqual(free);
    for (const { server_id, port } of assigned)
      expect(await servers.waitForLines(server_id, 1)).toEqual([String(port)]);
    const waiting = await Promise.all(created.map(servers.get)).then((all) =>
      all.filter(({ started_at }) => started_at === undefined),
    );
    expect(waiting.map(({ destroyed_at }) => destroyed_at)).toEqual(waiting.map(() => undefined));
    expect(waiting).toHaveLength(3);
    const oldest = muster.events.find((event) => event.event === 'server_waits' && event.reason === 'no_ports');
    const waiting_id = oldest?.event === 'server_waits' ? oldest.server_id : '';
    expect(waiting.map(({ id }) => id)).toContain(waiting_id);
    const [line] = await servers.linesOf(waiting_id, 'std_err');
    expect(line).toStartWith(
      '[muster] this server does not run yet: each machine of this region has too few free ports',
    );
  });

  test('keeps a port for a minute after its server has ended', async () => {
    const before = await readAssigned();
    const [ended] = before;
    await servers.destroy(ended?.server_id ?? '', '?override_kill_timeout=0');
    await waitForEndEvent(muster, ended?.server_id ?? '');
    await waitForPlacement();
    expect(await readAssigned()).toEqual(before.slice(1));
    // The clock also runs on its own, so half a minute is left for that.
    muster.clock.advance(30_000);
    await waitForPlacement();
    expect(await readAssigned()).toEqual(before.slice(1));
    muster.clock.advance(30_000);
    const assigned = await waitFor(async () => {
      const some = await readAssigned();
      return some.length === before.length && some;
    }, 'a server that waits to have the port');
    expect(assigned.map(({ port }) => port).sort()).toEqual(before.map(({ port }) => port).sort());
    expect(assigned).not.toEqual(before);
  });

  test('starts a server without ports even if none is free', async () => {
    const server_id = await servers.run('exec sleep 600');
    expect((await servers.waitForStart(server_id)).network.ports).toEqual({});
  });
});

/** Returns a range of free ports of this test's own. */
function findRange(count: number): { min: number; max: number } {
  for (;;) {
    const ports = Array.from({ length: count }, findFreePort);
    const [min = 0, max = 0] = [Math.min(...ports), Math.max(...ports)];
    if (max - min === count - 1) return { min, max };
  }
}
