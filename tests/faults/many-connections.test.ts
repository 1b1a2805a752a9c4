import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { holdConnections } from '../support/network/held-connections.ts';
import { openRawSocket } from '../support/network/raw-socket.ts';
import { COMMAND, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

const DESCRIPTORS_MAX = 256;
const NEW_CLIENTS = 10;
const NEW_CLIENT = '127.0.0.2';
const OTHER = '127.0.0.9';
const PROXY = '127.0.0.3';
const HALF_A_HEAD = 'GET /health/live HTTP/1.1\r\n';
const HEAD = `${HALF_A_HEAD}Host: localhost\r\n`;

describe(`connections: a service with ${DESCRIPTORS_MAX} descriptors answers new clients`, () => {
  const command = ['/bin/sh', '-c', `ulimit -n ${DESCRIPTORS_MAX}; exec "$0" "$@"`, ...COMMAND];
  const CASES: [name: string, addresses: string[], each: number, text: string][] = [
    ['while one address opens as many connections as it can, and reopens them', [OTHER], 250, HALF_A_HEAD],
    ['while one address opens as many connections as it can, and sends requests', [OTHER], 250, `${HEAD}\r\n`],
    [
      'while five addresses together open as many connections as they can',
      [4, 5, 6, 7, 8].map((last) => `127.0.0.${last}`),
      50,
      HALF_A_HEAD,
    ],
  ];
  test('while other addresses open too many connections', async () => {
    await using home = await makeHome({}, { has_prepared_database: true });
    const { url, output } = await home.start({ command });
    for (const [name, addresses, count, text] of CASES) {
      using opened = new DisposableStack();
      const held = addresses.map((address) =>
        opened.use(holdConnections({ base_url: url, address, count, text, reopens: true })),
      );
      await waitFor(() => held.some((each) => each.closedCount() > 0), `the first connection to be closed ${name}`);
      for (let number = 0; number < NEW_CLIENTS; number += 1) {
        const text = `${HEAD}Connection: close\r\n\r\n`;
        using client = holdConnections({ base_url: url, address: NEW_CLIENT, count: 1, text });
        await waitFor(() => client.received[0]?.startsWith('HTTP/1.1 200'), `an answer ${name}`);
      }
    }
    await waitFor(() => output().includes('"event":"connections_closed"'), 'the closed connections in the log');
    expect(output()).not.toContain('database_lost');
  });
});

describe('connections: an address above its limit', () => {
  const PER_ADDRESS_MAX = 20;
  const settings = {
    MUSTER_CONNECTIONS_PER_ADDRESS_MAX: String(PER_ADDRESS_MAX),
    MUSTER_TRUSTED_PROXIES: PROXY,
  };

  test('loses its silent and idle ones; its poll, its WebSocket and those of other addresses stay', async () => {
    await using home = await makeHome(settings, { has_prepared_database: true });
    const { url, api, administrator_token: token, output } = await home.start();
    const { watch } = await api.ok('GET', '/cloud/games', { token });
    using socket = await openRawSocket(url, token, { localAddress: OTHER });
    let is_socket_closed = false;
    void socket.closed.then(() => {
      is_socket_closed = true;
    });
    const open = (address: string, count: number, text: string) =>
      holdConnections({ base_url: url, address, count, text });
    const ask = `Host: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    using poll = open(OTHER, 1, `GET /cloud/games?watch_index=${watch.index} HTTP/1.1\r\n${ask}`);
    using below = open(NEW_CLIENT, PER_ADDRESS_MAX, HALF_A_HEAD);
    using proxied = open(PROXY, 2 * PER_ADDRESS_MAX, HALF_A_HEAD);
    using idle = open(OTHER, 2 * PER_ADDRESS_MAX, `${HEAD}\r\n`);
    using silent = open(OTHER, PER_ADDRESS_MAX, '');
    const used = 2;
    await waitFor(
      () => idle.closedCount() === PER_ADDRESS_MAX + used && silent.closedCount() === PER_ADDRESS_MAX,
      'the silent connections and half of the idle ones to be closed',
    );
    expect([is_socket_closed, poll.closedCount()]).toEqual([false, 0]);
    expect([below.openCount(), proxied.openCount()]).toEqual([PER_ADDRESS_MAX, 2 * PER_ADDRESS_MAX]);
    await waitFor(() => output().includes(`"networks":["${OTHER}"]`), 'the closed connections in the log');
    using later = open(OTHER, 1, `${HEAD}\r\n`);
    await waitFor(() => later.received[0]?.startsWith('HTTP/1.1 200'), 'the address to be answered again');
  });
});

/** A user of its own, which may read the program of the tests. */
const OTHER_USER = 54_322;
const AS_OTHER_USER = [
  'setpriv',
  `--reuid=${OTHER_USER}`,
  `--regid=${OTHER_USER}`,
  '--clear-groups',
  '--inh-caps=-all,+dac_read_search',
  '--ambient-caps=-all,+dac_read_search',
];
const canBecomeOther = Bun.which('setpriv') !== null && Bun.spawnSync([...AS_OTHER_USER, 'true']).exitCode === 0;

test.skipIf(!canBecomeOther)(
  'connections: a game server above the limit loses its own; the others of its machine keep theirs, and open new ones',
  async () => {
    const MAX = 20;
    const LOCAL = '127.0.0.1';
    const settings = { MUSTER_CONNECTIONS_PER_ADDRESS_MAX: String(MAX) };
    await using home = await makeHome(settings, { has_prepared_database: true });
    const { url, output } = await home.start();
    using others = holdConnections({ base_url: url, address: LOCAL, count: MAX / 2, text: `${HEAD}\r\n` });
    const script = `
      const { holdConnections } = await import(${JSON.stringify(join(import.meta.dir, '../support/network/held-connections.ts'))});
      const options = { address: '${LOCAL}', count: ${2 * MAX}, text: ${JSON.stringify(`${HEAD}\r\n`)}, reopens: true };
      holdConnections({ base_url: '${url}', ...options });
      process.stdin.resume();`;
    await using greedy = Bun.spawn([...AS_OTHER_USER, process.execPath, '-e', script], { stdin: 'pipe' });
    await waitFor(() => output().includes(`"networks":["${LOCAL} (user ${OTHER_USER})"]`), 'connections to be closed');
    for (let number = 0; number < NEW_CLIENTS; number += 1) {
      const text = `${HEAD}Connection: close\r\n\r\n`;
      using client = holdConnections({ base_url: url, address: LOCAL, count: 1, text });
      await waitFor(() => client.received[0]?.startsWith('HTTP/1.1 200'), 'an answer');
    }
    expect(others.closedCount()).toBe(0);
    greedy.kill();
  },
  300_000,
);
