import { describe, expect, test } from 'bun:test';
import { isOwnAddress, isPublicAddress, parseAllowList } from '../../../src/platform/outbound/addresses.ts';
import { targetProblem } from '../../../src/platform/outbound/target.ts';
import { refusalOf } from '../../support/refusal.ts';

/** By the reason why no request may go there (IANA's registries, and the list that smokescreen is tested with). */
const NOT_PUBLIC: Record<string, string[]> = {
  'this network': ['0.0.0.0', '0.1.2.3', '::'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1', 'fdff::1'],
  'carrier grade NAT, and the metadata of Alibaba': ['100.64.0.1', '100.127.255.255', '100.100.100.200'],
  'link-local, and the metadata of most clouds': ['169.254.169.254', '169.254.0.1', 'fe80::1', 'febf::1'],
  'metadata of AWS, Azure and Oracle': ['fd00:ec2::254', '168.63.129.16', '192.0.0.192'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  broadcast: ['255.255.255.255'],
  'documentation and measuring': [
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '198.18.0.1',
    '2001:db8::1',
    '3fff::1',
    '2001:2::1',
  ],
  unassigned: ['240.0.0.1', '254.1.2.3', '4000::1', '8000::1', 'e000::1', '::2', '::7f00:1', '100::1'],
  'site-local, deprecated': ['fec0::1'],
  'IPv4 within IPv6': ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:0:127.0.0.1', '::127.0.0.1'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::a00:1'],
  '6to4, Teredo and relays': ['2002:7f00:1::1', '2002:808:808::1', '2001::1', '192.88.99.1', '192.52.193.1'],
  'no address': [
    '',
    'localhost',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '1.2.3',
    '1.2.3.4.5',
    'fe80::1%eth0',
    '8.8.8.8/0',
  ],
};
const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.216.34',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '2a00:1450:4001:81b::200e',
];

describe('an address is public', () => {
  for (const address of PUBLIC) test(address, () => expect(isPublicAddress(address)).toBe(true));
});

for (const [why, addresses] of Object.entries(NOT_PUBLIC)) {
  describe(`an address is not public: ${why}`, () => {
    for (const address of addresses) test(JSON.stringify(address), () => expect(isPublicAddress(address)).toBe(false));
  });
}

test('addresses of this machine are recognized in any spelling', () => {
  for (const address of ['127.0.0.1', '::ffff:127.0.0.1']) expect(isOwnAddress(address)).toBe(true);
  expect(isOwnAddress('1.1.1.1')).toBe(false);
});

describe("outbound: the operator's allow list", () => {
  for (const entry of [
    '',
    ' ',
    'a b',
    'http://x',
    'x:0',
    'x:65536',
    'x:y',
    '10.0.0.0/33',
    '10.0.0.0/8:80',
    '[::1',
    '::1]:80',
    'x/y',
    '*.x',
    'x@y',
    '-x',
    // Other spellings of an address.
    '10.1.2',
    '10.1/16',
    '010.0.0.0/8',
    '0x7f.1:8080',
    '2130706433',
  ]) {
    test(`refuses the entry ${JSON.stringify(entry)}`, () => {
      expect(refusalOf(RangeError, () => parseAllowList([entry])).message).toBe(entry);
    });
  }

  const at = (host: string, port: number, address: string) => ({ host, port, address });
  const CASES: [string, [string, number, string], boolean][] = [
    ['10.1.0.0/16', ['x.example', 80, '10.1.2.3'], true],
    ['10.1.0.0/16', ['10.1.2.3', 9_999, '10.1.2.3'], true],
    ['10.1.0.0/16', ['x.example', 80, '10.2.0.1'], false],
    ['10.1.0.0/16', ['x.example', 80, '::1'], false],
    ['10.1.2.3', ['x.example', 25, '10.1.2.3'], true],
    ['10.1.2.3', ['x.example', 25, '::ffff:10.1.2.3'], true],
    ['10.1.2.3:8080', ['x.example', 8_080, '10.1.2.3'], true],
    ['10.1.2.3:8080', ['x.example', 80, '10.1.2.3'], false],
    ['10.1.2.3:80', ['x.example', 80, '10.1.2.3'], true],
    ['::1', ['x.example', 80, '::1'], true],
    ['::ffff:10.1.0.0/112', ['x.example', 80, '10.1.2.3'], true],
    ['::ffff:10.1.0.0/112', ['x.example', 80, '10.2.0.1'], false],
    ['[::1]:8080', ['x.example', 8_080, '::1'], true],
    ['[::1]:8080', ['x.example', 8_081, '::1'], false],
    ['fd00::/8', ['x.example', 80, 'fd00::1'], true],
    ['verify.internal', ['verify.internal', 81, '10.0.0.1'], true],
    ['Verify.Internal:8080', ['verify.internal', 8_080, '10.0.0.1'], true],
    ['verify.internal:8080', ['verify.internal', 80, '10.0.0.1'], false],
    ['verify.internal:8080', ['x.verify.internal', 8_080, '10.0.0.1'], false],
    ['localhost:8080', ['127.0.0.1', 8_080, '127.0.0.1'], false],
  ];
  for (const [entry, [host, port, address], is_allowed] of CASES) {
    test(`${entry} ${is_allowed ? 'allows' : 'does not allow'} ${host} at ${port}, which is ${address}`, () => {
      expect(parseAllowList([entry]).allows(at(host, port, address))).toBe(is_allowed);
    });
  }
});

test('outbound: a forbidden address is refused by its text where possible, unless the operator allows it', () => {
  const allowed = parseAllowList(['127.0.0.1:8080', 'localhost:25']);
  const CASES: [string, ReturnType<typeof targetProblem>][] = [
    ['https://user:secret@example.com', 'invalid'],
    ['http://example.com:25', 'invalid-port'],
    ['http://example.com:81', 'invalid-port'],
    ['http://example.com:8443', undefined],
    ['http://127.0.0.1:8080', undefined],
    ['http://2130706433:8080', undefined],
    ['http://127.0.0.1', 'invalid-ip'],
    ['http://localhost:25/x', undefined],
    ['http://localhost:26', 'invalid-ip'],
    ['data:,x', 'invalid-scheme'],
  ];
  for (const [url, problem] of CASES) expect([url, targetProblem(url, allowed)]).toEqual([url, problem]);
  // The address of a name may be in an allowed network. Each request checks that.
  const networks = parseAllowList(['10.0.0.0/8', '192.168.1.1:25']);
  const NAMES: typeof CASES = [
    ['http://verify.local:81', undefined],
    ['http://verify.example:25', undefined],
    ['http://10.1.2.3:25', undefined],
    ['http://11.1.2.3:25', 'invalid-port'],
    ['http://localhost:8080', 'invalid-ip'],
  ];
  for (const [url, problem] of NAMES) expect([url, targetProblem(url, networks)]).toEqual([url, problem]);
  const address = parseAllowList(['192.168.1.1:8080']);
  expect(targetProblem('http://verify.local:8080', address)).toBeUndefined();
  expect(targetProblem('http://verify.local:81', address)).toBe('invalid-ip');
  expect(targetProblem('http://verify.example:81', address)).toBe('invalid-port');
});
