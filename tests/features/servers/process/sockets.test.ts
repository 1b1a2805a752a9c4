import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { findFreePort } from '../../../support/network/test-ports.ts';
import {
  IS_ROOT,
  openTestRuntime,
  PROCESS_RUNTIMES,
  processes,
  type TestRuntime,
} from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

const [AF_NETLINK, SOCK_RAW] = [16, 3];
const [NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_CONNECTOR, NETLINK_GENERIC] = [0, 4, 11, 16];
const [IPPROTO_IP, IP_LOCAL_PORT_RANGE, IPPROTO_TCP, TCP_NODELAY, TCP_ULP] = [0, 51, 6, 1, 31];
const [EPERM, ENOPROTOOPT] = [1, 92];
/** Listens with a socket that is not bound, at a port of the kernel's, and keeps it open. */
const LISTEN = `
  use Socket;
  socket(my $socket, AF_INET, SOCK_STREAM, 0);
  listen($socket, 5) or die "$!";
  $| = 1;
  print +(sockaddr_in(getsockname($socket)))[0], "\\n";
  sleep 600;`;

describe.each(PROCESS_RUNTIMES)('the runtime "$name": the sockets of a server', (kind) => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(kind);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('cannot choose the port at which they listen without being bound', async () => {
    const script = `
      use Socket;
      socket(my $socket, AF_INET, SOCK_STREAM, 0);
      for ([${IPPROTO_IP}, ${IP_LOCAL_PORT_RANGE}, pack("L", 40001 << 16 | 40001)], [${IPPROTO_TCP}, ${TCP_ULP}, "smc"]) {
        print setsockopt($socket, $_->[0], $_->[1], $_->[2]) ? "set " : $! + 0, " ";
      }
      print setsockopt($socket, ${IPPROTO_TCP}, ${TCP_NODELAY}, 1) ? "set" : "$!";`;
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe(`${ENOPROTOOPT} ${ENOPROTOOPT} set`);
  });

  test('of netlink list network interfaces, and are of no other protocol', async () => {
    const protocols = [NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_CONNECTOR, NETLINK_GENERIC];
    const script = `
      for (${protocols}) { print socket(my $socket, ${AF_NETLINK}, ${SOCK_RAW}, $_) ? "$_ " : "no "; }`;
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe(`${NETLINK_ROUTE} no no no `);
  });

  test('are pairs of unix sockets only: the kernel is not asked for other families', async () => {
    const script = `
      use Socket;
      for (AF_UNIX, AF_INET, 30, 40) {
        print socketpair(my $one, my $other, $_, SOCK_STREAM, 0) ? "pair " : $! + 0, " ";
      }`;
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe(`pair  ${EPERM} ${EPERM} ${EPERM} `);
  });

  test('are found if they listen at a port that is not its own, by IPv4 and IPv6', async () => {
    const port = findFreePort();
    const ports = { game: { protocol: 'tcp', routing: 'host', internal_port: port } } as const;
    const findPort = async (server: { server_id: string; identity: unknown }) =>
      (await opened.runtime.findStrayPorts?.([{ ...server, ports } as never]))?.get(server.server_id);
    const good = await opened.run(
      `exec perl -MIO::Socket::INET -e '$| = 1; my $s = IO::Socket::INET->new(Listen => 1, LocalPort => ${port}); print "up\\n"; sleep 600'`,
      { ports },
    );
    await waitFor(async () => (await opened.output(good)) === 'up\n', 'the server to listen');
    expect(await findPort(good)).toBeUndefined();
    for (const script of [LISTEN, LISTEN.replace('AF_INET', 'AF_INET6').replace('sockaddr_in', 'sockaddr_in6')]) {
      // By a child, too.
      const bad = await opened.run(`perl -e '${script}' & wait`, { ports });
      const listening = await waitFor(
        async () => Number(await opened.output(bad)) || undefined,
        'the server to listen',
      );
      expect(await findPort(bad)).toBe(listening);
      await opened.remove(bad);
      expect(await findPort(bad)).toBeUndefined();
    }
    await opened.remove(good);
  });

  test('are not judged by a runtime that does not have the server, such as that of processes for containers', async () => {
    await using other = await openTestRuntime(PROCESS_RUNTIMES.at(-1) ?? kind);
    const { server_id } = await other.run(`perl -e '${LISTEN}' & wait`);
    await waitFor(async () => (await other.output({ server_id, identity: undefined })) !== '', 'the server to listen');
    const found = await opened.runtime.findStrayPorts?.([{ server_id, identity: undefined, ports: {} }]);
    expect(found).toEqual(new Map());
  });

  test('are not judged if the server was started without isolation, by an earlier service', async () => {
    const earlier = await processes(kind.name === 'process' && IS_ROOT, { isolation: 'off' })(opened.directory);
    const order = await opened.orderOf(`perl -e '${LISTEN}' & wait`, { ports: {} });
    const server = await opened.start(order, earlier);
    await waitFor(async () => (await opened.output(server)) !== '', 'the server to listen');
    expect(await opened.runtime.findStrayPorts?.([{ ...server, ports: {} }])).toEqual(new Map());
    await opened.remove(server);
  });
});
