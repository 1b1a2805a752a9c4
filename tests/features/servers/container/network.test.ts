import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { planNetwork } from '../../../../src/features/servers/runtimes/container/container-network.ts';
import type { ServerPort } from '../../../../src/features/servers/tables.ts';
import { makeScriptImage, openContainers, WITHOUT_CONTAINERS } from '../../../support/runtimes/containers.ts';
import { CONTAINER_RUNTIME, HOST, openTestRuntime, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

const port = (protocol: 'tcp' | 'udp', internal_port: number, public_port: number): ServerPort => ({
  protocol,
  routing: 'host',
  internal_port,
  public_port,
});

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('the network of a container', () => {
  let opened: TestRuntime;
  let api: ReturnType<typeof Bun.serve>;
  let other: ReturnType<typeof Bun.serve>;
  beforeAll(async () => {
    api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('the API') });
    other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('another service') });
    const open = (directory: string) => openContainers(directory, { host: HOST, api_url: api.url.origin });
    opened = await openTestRuntime({ ...CONTAINER_RUNTIME, open });
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await Promise.all([api.stop(true), other.stop(true)]);
  });

  /** Returns a port that is free for both protocols, and that the machine gives to no connection meanwhile. */
  async function freePort(): Promise<number> {
    for (;;) {
      const wanted = { hostname: '0.0.0.0', port: 20_000 + Math.floor(Math.random() * 6_000) };
      try {
        Bun.listen({ ...wanted, socket: { data() {} } }).stop(true);
        (await Bun.udpSocket(wanted)).close();
        return wanted.port;
      } catch {}
    }
  }

  test('has the ports that its developer chose, at other ones of the machine, also after a restart of the service', async () => {
    const [tcp, udp] = [await freePort(), await freePort()];
    const ports = { game: port('udp', 7_777, udp), page: port('tcp', 80, tcp) };
    const build = await makeScriptImage(opened.directory, ECHO);
    const server = await opened.run('', { build, ports });
    await opened.reopen();
    expect(await waitFor(() => echoByTcp(tcp), 'the answer by TCP')).toBe('hello');
    expect(await waitFor(() => echoByUdp(udp), 'the answer by UDP')).toBe('hello');
    await opened.remove(server);
    expect(await echoByTcp(tcp)).toBeUndefined();
  });

  test('lets two servers listen on the same port', async () => {
    const numbers = [await freePort(), await freePort()];
    const servers = await Promise.all(
      numbers.map((number, index) =>
        opened.run(`while :; do echo ${index} | nc -l -p 80; done`, { ports: { page: port('tcp', 80, number) } }),
      ),
    );
    for (const [index, number] of numbers.entries()) {
      expect(await waitFor(() => echoByTcp(number), 'the answer')).toBe(`${index}\n`);
    }
    for (const server of servers) await opened.remove(server);
  });

  test('that cannot get a port of the machine does not start', async () => {
    await using taken = await takePort();
    const order = await opened.orderOf('exec sleep 600', { ports: { page: port('tcp', 80, taken.port) } });
    await expect(opened.start(order)).rejects.toThrow('the container could not be set up');
    const server = { server_id: order.server_id, identity: undefined };
    expect(await opened.output(server, 'std_err')).toBe('');
  });

  test('reaches the API at the address that servers get, and nothing else of the machine', async () => {
    const script = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 ${api.port}; nc 127.0.0.1 ${other.port}; nc 127.0.0.1 5432`;
    const server = await opened.run(script);
    await opened.waitForEnd(server);
    expect(await opened.output(server)).toEndWith('the API');
    expect(await opened.output(server, 'std_err')).toMatch(/refused.*refused/s);
  });

  test.each(['10.1.2.3', '172.17.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '192.0.0.8', '240.0.0.1'])(
    'reaches no private network, for example %s',
    async (address) => {
      const server = await opened.run(`nc -w 5 ${address} 80`);
      await opened.waitForEnd(server);
      expect(await opened.output(server, 'std_err')).toContain('refused');
    },
  );

  test('does not reach an address that the machine has on its loopback device', async () => {
    await Bun.$`ip address add ${ON_LOOPBACK}/32 dev lo`;
    try {
      const server = await opened.run(`nc -w 5 ${ON_LOOPBACK} 80`);
      await opened.waitForEnd(server);
      expect(await opened.output(server, 'std_err')).toContain('refused');
      const { rules, pasta_arguments } = planNetwork({}, api.url.origin);
      expect(rules).toContain(ON_LOOPBACK);
      expect(rules).not.toMatch(/\b127\.0\.0\.1\b|[ {]::1\b/);
      expect(pasta_arguments.join(' ')).not.toContain(ON_LOOPBACK);
    } finally {
      await Bun.$`ip address delete ${ON_LOOPBACK}/32 dev lo`;
    }
  });

  test.each(['64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16', '0.0.0.0/8'])(
    'leads to no private network by translated addresses: %s',
    (network) => {
      expect(planNetwork({}, api.url.origin).rules).toMatch(new RegExp(`daddr \\{[^}]*${network}[^}]*\\} reject`));
    },
  );
});

/** An address of documentation, which no machine has. */
const ON_LOOPBACK = '203.0.113.77';

/** Answers what it gets: by TCP at port 80, by UDP at 7777. */
const ECHO = `
Bun.listen({ hostname: '0.0.0.0', port: 80, socket: { data: (socket, data) => { socket.write(data) } } });
await Bun.udpSocket({ port: 7777, socket: { data: (socket, data, port, address) => { socket.send(data, port, address) } } });
`;

/** Takes a free port of the machine. */
async function takePort(): Promise<{ port: number } & AsyncDisposable> {
  const server = Bun.serve({ hostname: '::', port: 0, fetch: () => new Response('taken') });
  return { port: Number(server.port), [Symbol.asyncDispose]: () => server.stop(true) };
}

/** Returns what a TCP port answers; undefined if nothing does. */
async function echoByTcp(port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  try {
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        open: (opened) => void opened.write('hello'),
        data: (_, data) => resolve(data.toString()),
        close: () => resolve(undefined),
      },
    });
    const text = await promise;
    socket.end();
    return text;
  } catch {
    return undefined;
  }
}

/** Returns what a UDP port answers within a moment. */
async function echoByUdp(port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = await Bun.udpSocket({
    hostname: '127.0.0.1',
    connect: { hostname: '127.0.0.1', port },
    socket: { data: (_, data) => resolve(data.toString()), error: () => resolve(undefined) },
  });
  try {
    socket.send('hello');
    return await Promise.race([promise, Bun.sleep(500).then(() => undefined)]);
  } finally {
    socket.close();
  }
}
