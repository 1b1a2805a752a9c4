import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isPublicAddress, toBareHost } from '../../../src/platform/outbound/addresses.ts';
import { createOutbound, type OutboundFailure } from '../../../src/platform/outbound/outbound.ts';
import { answerText, answerWith, type Listener, listenAt } from '../../support/network/listener.ts';
import { openNameServer } from '../../support/network/name-server.ts';
import { kindOf } from '../../support/outbound-failures.ts';

// Reachable only from this machine: a listener on each loopback address, with the same port. No request may reach it.
let trap: Listener;
let trap_of_ipv6: Listener;
beforeAll(async () => {
  trap = await listenAt('127.0.0.1', answerWith(answerText(200)));
  trap_of_ipv6 = await listenAt('::1', answerWith(answerText(200)), trap.port);
});
afterAll(async () => {
  expect(trap.connections + trap_of_ipv6.connections).toBe(0);
  await trap[Symbol.asyncDispose]();
  await trap_of_ipv6[Symbol.asyncDispose]();
});

const REQUEST = { headers: {}, body: '{}', timeout_ms: 10_000, answer_bytes_max: 0 };
/** Resolves names only by the test's name server. */
const open = (resolve: (host: string) => Promise<string[]>, allowed_private: string[] = []) =>
  createOutbound({ allowed_private, resolve });
const nameless = open(async () => []);

describe('outbound: loopback in another spelling is loopback', () => {
  const SPELLINGS = [
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0x7f.0.0.0x1',
    '017700000001',
    '0177.0.0.01',
    '127.0.0.1.',
    '①②⑦.⓪.⓪.①',
    '0',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '[64:ff9b::127.0.0.1]',
    '%31%32%37.0.0.1',
  ];
  for (const host of SPELLINGS) {
    test(host, async () => {
      expect(await kindOf(nameless.post(`http://${host}:${trap.port}/`, REQUEST))).toBe('forbidden_address');
    });
  }
});

test('outbound: a public address is refused at a port below 1024 that is not 80 or 443', async () => {
  const outbound = open(async () => ['93.184.216.34']);
  for (const port of [22, 25, 1023]) {
    expect(await kindOf(outbound.post(`http://mail.example:${port}/`, REQUEST))).toBe('forbidden_address');
  }
});

test("outbound: this machine's own address is refused, although it is public", async () => {
  const address = '93.184.216.34';
  const outbound = createOutbound({
    allowed_private: [],
    resolve: async () => [address],
    isOwn: (one) => one === address,
  });
  expect(await kindOf(outbound.post('http://self.example/', REQUEST))).toBe('forbidden_address');
});

describe('outbound: other schemes than http and https are refused', () => {
  for (const url of [
    'file:///etc/hostname',
    'data:,x',
    'ftp://127.0.0.1/',
    'blob:x',
    's3://x/y',
    'ws://127.0.0.1/',
    'unix:/run/x',
    '//127.0.0.1',
    '',
    'x',
    'http:',
  ]) {
    test(JSON.stringify(url), async () => expect(await kindOf(nameless.post(url, REQUEST))).toBe('bad_request'));
  }

  test('and an address with a password', async () => {
    expect(await kindOf(nameless.post(`http://x:y@127.0.0.1:${trap.port}/`, REQUEST))).toBe('bad_request');
  });
});

describe('a name that resolves to an internal address', () => {
  const INSIDE = ['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.0.0.1', '169.254.169.254', 'fe80::1', '0.0.0.0'];
  for (const address of INSIDE) {
    test(`is refused: ${address}`, async () => {
      const outbound = open(async () => [address]);
      expect(await kindOf(outbound.post(`http://x.example:${trap.port}/`, REQUEST))).toBe('forbidden_address');
    });

    test(`is refused if it is one of several: ${address}`, async () => {
      for (const addresses of [
        ['1.1.1.1', address],
        [address, '2606:4700::1111'],
      ]) {
        const outbound = open(async () => addresses);
        expect(await kindOf(outbound.post(`http://x.example:${trap.port}/`, REQUEST))).toBe('forbidden_address');
      }
    });
  }

  test('localhost is refused, as the system resolves it', async () => {
    const outbound = createOutbound({ allowed_private: [] });
    expect(await kindOf(outbound.post(`http://localhost:${trap.port}/`, REQUEST))).toBe('forbidden_address');
  });
});

describe('a name whose addresses change', () => {
  /** An allowed target, on another loopback address than the trap. */
  const NEAR = '127.0.0.2';

  test('is resolved once for a request, which connects to the checked address', async () => {
    await using near = await listenAt(NEAR, answerWith(answerText(200)), trap.port);
    using names = await openNameServer((_name, type, count) =>
      type === 'A' ? [count === 0 ? NEAR : '127.0.0.1'] : undefined,
    );
    const outbound = open(names.resolve, [`${NEAR}/32`]);
    const url = `http://rebinding.example:${trap.port}/`;
    expect(await outbound.post(url, REQUEST)).toEqual({ status: 200, text: '' });
    expect(names.questionCount('rebinding.example', 'A')).toBe(1);
    expect(near.received[0]).toContain(`host: rebinding.example:${trap.port}\r\n`);
    // A connection that is still open does not spare the name its next check.
    expect(await kindOf(outbound.post(url, REQUEST))).toBe('forbidden_address');
    expect(names.questionCount('rebinding.example', 'A')).toBe(2);
    expect(near.connections).toBe(1);
  });

  test('is refused with a public IPv4 and an internal IPv6 address', async () => {
    using names = await openNameServer((_name, type) => (type === 'A' ? ['1.1.1.1'] : ['::1']));
    const url = `http://mixed.example:${trap.port}/`;
    expect(await kindOf(open(names.resolve).post(url, REQUEST))).toBe('forbidden_address');
  });

  test('is refused without an address', async () => {
    using names = await openNameServer(() => undefined);
    expect(await kindOf(open(names.resolve).post('http://gone.example/', REQUEST))).toBe('unreachable');
  });

  test('is refused if no name server answers in time', async () => {
    const outbound = open(() => new Promise(() => {}));
    expect(await kindOf(outbound.post('http://silent.example/', { ...REQUEST, timeout_ms: 100 }))).toBe('timeout');
  });
});

describe('a redirect', () => {
  for (const status of [301, 302, 303, 307, 308]) {
    test(`with ${status} is returned as the answer and not followed`, async () => {
      const location = `http://127.0.0.1:${trap.port}/`;
      await using outside = await listenAt('127.0.0.2', answerWith(answerText(status, { headers: { location } })));
      const outbound = open(async () => [], ['127.0.0.2']);
      const url = `http://127.0.0.2:${outside.port}/`;
      expect(await outbound.post(url, { ...REQUEST, headers: { 'x-key': 'secret' } })).toEqual({ status, text: '' });
    });
  }
});

test('outbound: none of 1,000 hostile addresses reaches an internal target', async () => {
  using names = await openNameServer((name, type) => {
    // Every name resolves to an internal address, some also to others.
    const inside = type === 'A' ? '127.0.0.1' : '::1';
    return name.length % 2 === 0 ? [inside] : [type === 'A' ? '1.1.1.1' : '2606:4700::1111', inside];
  });
  const outbound = open(names.resolve, ['10.9.9.9:1']);
  const at = (host: fc.Arbitrary<string>) => host.map((name) => `http://${name}:${trap.port}/?x`);
  const octet = fc.constantFrom('127', '0x7f', '0177', '0', '1', '0x0', '000', '10', '169', '254');
  const addresses = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true, validSchemes: ['http', 'https'] }),
    at(fc.domain()),
    at(
      fc
        .webAuthority({ withIPv4Extended: true, withUserInfo: true })
        .map((authority) => authority.replace(/:\d+$/, '')),
    ),
    at(fc.ipV4Extended()),
    at(fc.ipV6().map((address) => `[${address}]`)),
    at(fc.array(octet, { minLength: 1, maxLength: 5 }).map((octets) => octets.join('.'))),
    at(fc.ipV4().map((address) => `[::ffff:${address}]`)),
    at(fc.constantFrom('x@', 'x:y@', '127.0.0.1#@', '127.0.0.1\\@').map((text) => `${text}127.0.0.1`)),
    fc.string().map((text) => `http://127.0.0.1:${trap.port}${text}`),
    fc.string(),
  );
  // Public addresses belong to others, so a test sends nothing there.
  const sent = fc.sample(
    addresses.filter((url) => !URL.canParse(url) || !isPublicAddress(toBareHost(new URL(url).hostname))),
    { numRuns: 1_000, seed: 19 },
  );
  const outcomes = await Promise.all(
    sent.map((url, index) =>
      outbound
        .post(url, { ...REQUEST, account: `account ${index}`, timeout_ms: 20_000 })
        .then(({ status }) => `status ${status}`)
        .catch((error: OutboundFailure) => error.kind),
    ),
  );
  expect(trap.connections + trap_of_ipv6.connections).toBe(0);
  // Most were refused as internal; some names are not valid at all.
  const counts = Map.groupBy(outcomes, (outcome) => outcome);
  expect(counts.get('forbidden_address')?.length).toBeGreaterThan(300);
  expect(outcomes.filter((outcome) => outcome.startsWith('status'))).toEqual([]);
});

test('outbound: internal targets need the permission of the operator', async () => {
  await using near = await listenAt('127.0.0.3', answerWith(answerText(200)));
  const url = (host: string, port = near.port) => `http://${host}:${port}/`;
  const outbound = open(async () => ['127.0.0.3'], [`verify.internal:${near.port}`]);
  expect((await outbound.post(url('verify.internal'), REQUEST)).status).toBe(200);
  expect((await outbound.post(url('verify.internal.'), REQUEST)).status).toBe(200);
  expect(await kindOf(outbound.post(url('other.internal'), REQUEST))).toBe('forbidden_address');
  expect(await kindOf(outbound.post(url('verify.internal', near.port + 1), REQUEST))).toBe('forbidden_address');
  expect((await outbound.post(url('other.internal'), { ...REQUEST, trusts_target: true })).status).toBe(200);
  expect(near.connections).toBe(3);
});
