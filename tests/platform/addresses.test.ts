import { afterEach, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import fc from 'fast-check';
import { StartError } from '../../src/platform/errors.ts';
import { assertProxySecret, createAddresses, readTrustedProxies } from '../../src/platform/http/addresses.ts';
import { route } from '../../src/platform/http/route.ts';
import { countingKeyOf } from '../../src/platform/networks.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { refusalOf } from '../support/refusal.ts';

const PROXIES = '10.0.0.0/8, 192.168.1.1, fd00::/8, ::1';

/** Returns the client address of a connection from `connected` with this X-Forwarded-For header. */
function addressOf(connected: string, forwarded: string | undefined, trusted: string | null = PROXIES): string {
  const headers = new Headers(forwarded === undefined ? [] : [['x-forwarded-for', forwarded]]);
  const request = new Request('http://muster', { headers });
  return createAddresses(readTrustedProxies(trusted ?? undefined)).clientOf(request, {
    requestIP: () => ({ address: connected, port: 1 }),
  });
}

describe('a proxy with a secret', () => {
  const SECRET = 'a secret of 22 letters';
  const addresses = createAddresses(readTrustedProxies('127.0.0.1'), SECRET);
  const read = (headers: Record<string, string>, connected = '127.0.0.1') => {
    const request = new Request('http://muster', { headers: { 'x-forwarded-for': '203.0.113.9', ...headers } });
    const server = { requestIP: () => ({ address: connected, port: 1 }) };
    return [addresses.clientOf(request, server), addresses.isOfUntrustedProxy(request, server)];
  };

  test('is trusted if it sends the secret from its own address', () => {
    expect(read({ 'muster-proxy-secret': SECRET })).toEqual(['203.0.113.9', false]);
  });

  test('does not make a game server on its machine trusted, which does not know the secret', () => {
    for (const secret of [undefined, '', 'A secret of 22 letters', `${SECRET}x`, SECRET.slice(1)]) {
      expect(read(secret === undefined ? {} : { 'muster-proxy-secret': secret })).toEqual(['127.0.0.1', true]);
    }
  });

  test('is not trusted by its secret alone, from another address', () => {
    expect(read({ 'muster-proxy-secret': SECRET }, '10.0.0.1')[0]).toBe('10.0.0.1');
  });

  test('is required where a trusted proxy has an address of this machine', () => {
    for (const text of ['127.0.0.1', '127.0.0.0/8', '::1', '10.0.0.1,::1/128']) {
      const { message } = refusalOf(StartError, () => assertProxySecret(readTrustedProxies(text)));
      expect(message).toContain('set MUSTER_PROXY_SECRET');
    }
    assertProxySecret(readTrustedProxies('192.0.2.7, 2001:db8::/32'));
  });
});

describe('addresses: X-Forwarded-For of an untrusted sender has no effect', () => {
  const FORWARDED = [
    '1.2.3.4',
    '10.0.0.1',
    '1.2.3.4, 10.0.0.1',
    '::1',
    '127.0.0.1',
    '',
    ',',
    'unknown',
    '1.2.3.4,'.repeat(1_000),
  ];
  const UNTRUSTED = ['203.0.113.9', '127.0.0.1', '11.0.0.1', '9.255.255.255', '192.168.1.2', '2001:db8::1', 'fe00::1'];
  for (const sender of UNTRUSTED) {
    test(sender, () => {
      for (const forwarded of FORWARDED) expect(addressOf(sender, forwarded)).toBe(sender);
    });
  }

  test('a proxy, if none is trusted', () => {
    for (const forwarded of FORWARDED) expect(addressOf('10.0.0.1', forwarded, null)).toBe('10.0.0.1');
    expect(createAddresses([]).clientOf(new Request('http://muster'), null)).toBe('');
  });
});

describe('addresses: the client is the right-most address that is not a trusted proxy:', () => {
  const CASES: [forwarded: string | undefined, client: string][] = [
    [undefined, '10.0.0.1'],
    ['', '10.0.0.1'],
    ['203.0.113.9', '203.0.113.9'],
    ['1.2.3.4, 203.0.113.9', '203.0.113.9'],
    ['1.2.3.4, 203.0.113.9, 10.1.1.1', '203.0.113.9'],
    ['1.2.3.4,203.0.113.9 ,\t10.1.1.1,192.168.1.1', '203.0.113.9'],
    ['10.9.9.9, 203.0.113.9', '203.0.113.9'],
    ['203.0.113.9, fd00::2', '203.0.113.9'],
    ['203.0.113.9, ::ffff:10.1.1.1', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:CB00:7109', '203.0.113.9'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['203.0.113.9:51234', '203.0.113.9'],
    ['[2001:db8::1]:51234', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    // If all are trusted, the first one is the farthest known.
    ['10.3.3.3, 10.2.2.2', '10.3.3.3'],
    // Elements of a list may be empty.
    ['203.0.113.9, ,,10.1.1.1,', '203.0.113.9'],
    // An unreadable element ends the list at the last trusted hop.
    ['unknown', '10.0.0.1'],
    ['203.0.113.9, unknown', '10.0.0.1'],
    ['203.0.113.9, unknown, 10.1.1.1', '10.1.1.1'],
    ['203.0.113.9 10.1.1.1', '10.0.0.1'],
    ['"203.0.113.9"', '10.0.0.1'],
    ['for=203.0.113.9', '10.0.0.1'],
    ['203.0.113.256', '10.0.0.1'],
    ['203.0.113', '10.0.0.1'],
    ['0xcb007109', '10.0.0.1'],
    ['3405803785', '10.0.0.1'],
    ['0313.0.0161.011', '10.0.0.1'],
    ['203.0.113.9:port', '10.0.0.1'],
    ['[203.0.113.9]', '203.0.113.9'],
    ['2001:db8::1::', '10.0.0.1'],
    ['localhost', '10.0.0.1'],
    ["203.0.113.9'; drop table players; --", '10.0.0.1'],
  ];
  test.each(CASES)('%p: %s', (forwarded, client) => {
    expect(addressOf('10.0.0.1', forwarded)).toBe(client);
    // A proxy with an IPv4 address may connect to an IPv6 socket.
    expect(addressOf('::ffff:10.0.0.1', forwarded)).toBe(client);
  });

  test('addresses: the address that a trusted proxy appends is used, whatever the client sends', () => {
    const anything = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });
    const near = fc.array(fc.constantFrom('10.1.1.1', 'fd00::1', '203.0.113.1', ',', ' ', 'x', ':1'), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(
        fc.oneof(
          anything,
          near.map((parts) => parts.join(',')),
        ),
        (forwarded) => {
          expect(addressOf('10.0.0.1', `${forwarded}, 198.51.100.7`)).toBe('198.51.100.7');
        },
      ),
    );
  });

  test('addresses: a chain of proxies is read up to its limit', () => {
    expect(addressOf('10.0.0.1', `203.0.113.9${', 10.1.1.1'.repeat(1_000)}`)).toBe('10.1.1.1');
  });
});

describe('rate limits count an address by its network:', () => {
  const COUNTED: [address: string, as: string][] = [
    ['203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['::1', '::/64'],
    ['', ''],
  ];
  test.each(COUNTED)('%p as %p', (address, as) => expect(countingKeyOf(address)).toBe(as));
});

describe('a wrong trusted proxy is refused, with the name of the setting:', () => {
  const WRONG = [
    '10.0.0',
    '10.0.0.0/33',
    '010.0.0.1',
    '1.2.3.4/',
    'fd00::/129',
    '1.2.3.4,,5.6.7.8',
    '12',
    ':',
    'fd00:::1',
  ];
  test.each(WRONG)('%p', (text) => {
    const { message } = refusalOf(StartError, () => readTrustedProxies(`10.0.0.1,${text}`));
    expect(message).toStartWith('MUSTER_TRUSTED_PROXIES has "');
    expect(message).toEndWith('with commas in between.');
  });

  test.each(['0.0.0.0/0', '::/0', '::ffff:0.0.0.0/96'])(
    'a trusted network that contains every address is refused: %p',
    (text) => {
      expect(refusalOf(StartError, () => readTrustedProxies(text)).message).toContain('which contains every address');
    },
  );

  test('trusted proxies: an IPv4 network written as IPv6 is an IPv4 network', () => {
    expect(addressOf('10.7.7.7', '203.0.113.9', '::ffff:10.0.0.0/104')).toBe('203.0.113.9');
    expect(addressOf('11.7.7.7', '203.0.113.9', '::ffff:10.0.0.0/104')).toBe('11.7.7.7');
  });
});

describe('a handler receives the address', () => {
  let app: TestApp | undefined;
  afterEach(() => app?.[Symbol.asyncDispose]());

  const where = route(
    'GET',
    '/where',
    { summary: 'For a test.', allow: 'anyone', response: Type.Object({ address: Type.String() }) },
    async ({ address }) => ({ address }),
  );
  const readAddress = async (...headers: string[]) => {
    const head = ['GET /where HTTP/1.1', 'Host: muster', ...headers, 'Connection: close', '', ''].join('\r\n');
    return (await sendRaw(app?.api.base_url ?? '', head)).body.address;
  };

  test('of the connection, whatever the headers are', async () => {
    app = await openTestApp([where]);
    expect(
      await readAddress('X-Forwarded-For: 203.0.113.9', 'X-Real-IP: 203.0.113.9', 'Forwarded: for=203.0.113.9'),
    ).toBe('127.0.0.1');
  });

  test('that a trusted proxy sends, in one header or in several', async () => {
    app = await openTestApp([where], { trusted_proxies: '127.0.0.1,10.0.0.0/8' });
    expect(await readAddress('X-Forwarded-For: 1.2.3.4, 203.0.113.9, 10.1.1.1')).toBe('203.0.113.9');
    expect(
      await readAddress('X-Forwarded-For: 1.2.3.4', 'x-forwarded-for: 203.0.113.9', 'X-FORWARDED-FOR: 10.1.1.1'),
    ).toBe('203.0.113.9');
    expect(await readAddress('X-Forwarded-For: 203.0.113.9', 'X-Forwarded-For:')).toBe('203.0.113.9');
    expect(await readAddress('X-Real-IP: 203.0.113.9')).toBe('127.0.0.1');
  });
});
