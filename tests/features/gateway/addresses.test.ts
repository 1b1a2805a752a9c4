import { describe, expect, test } from 'bun:test';
import { type AddressesOptions, createAddressOf } from '../../../src/features/gateway/addresses.ts';

const NAME = '0197a4a6-6f2c-7000-8000-0123456789ab-web';
const HOST = `${NAME}.games.example.com`;
const NONE = { current: () => new Map() };
const WILDCARD = { current: () => new Map([['*.games.example.com', { certificate: '', key: '' }]]) };
const BASE: AddressesOptions = {
  servers_domain: 'games.example.com',
  public_url: 'http://play.example.com:8080',
  service_port: 8_080,
  https_port: undefined,
  http_port: undefined,
  certificates: NONE,
};
const OWN_TLS = { public_url: 'https://play.example.com', https_port: 443, certificates: WILDCARD };

const CASES: { name: string; options: Partial<AddressesOptions>; https: string; http: string }[] = [
  { name: 'without TLS', options: {}, https: 'http 8080', http: 'http 8080' },
  {
    name: 'behind a proxy with TLS',
    options: { public_url: 'https://play.example.com' },
    https: 'https 443',
    http: 'https 443',
  },
  { name: 'with a certificate', options: OWN_TLS, https: 'https 443', http: 'http 8080' },
  { name: 'with a port for http', options: { ...OWN_TLS, http_port: 80 }, https: 'https 443', http: 'http 80' },
  {
    name: 'with a certificate of other names only',
    options: { ...OWN_TLS, http_port: 80, certificates: NONE },
    https: 'http 80',
    http: 'http 80',
  },
];

describe('gateway: addresses of its ports have the right host name, port and is_tls', () => {
  for (const { name, options, https, http } of CASES) {
    test(name, () => {
      const addressOf = createAddressOf({ ...BASE, ...options });
      const toText = (protocol: 'http' | 'https') => {
        const { hostname, port, is_tls } = addressOf({ protocol, gateway_name: NAME }) ?? {};
        expect(hostname).toBe(HOST);
        return `${is_tls ? 'https' : 'http'} ${port}`;
      };
      expect([toText('https'), toText('http')]).toEqual([https, http]);
    });
  }

  describe('of relays with TLS', () => {
    const port = {
      protocol: 'tcp_tls',
      gateway_name: NAME,
      public_hostname: 'eu.example.com',
      relay_port: 26_001,
    } as const;
    const KEY_PAIR = { certificate: '', key: '' };
    const addressWith = (...names: string[]) => {
      const certificates = { current: () => new Map(names.map((name) => [name, KEY_PAIR])) };
      return createAddressOf({ ...BASE, certificates })(port);
    };

    test('none without a certificate for one of their names', () => {
      expect(addressWith()).toBeUndefined();
      expect(addressWith('play.example.com', '*.com')).toBeUndefined();
    });

    test('the name of the machine, or else of the server, if the certificate has it', () => {
      const own = { hostname: 'eu.example.com', port: 26_001, is_tls: true };
      expect(addressWith('eu.example.com', '*.games.example.com')).toEqual(own);
      expect(addressWith('*.example.com')).toEqual(own);
      expect(addressWith('*.games.example.com')).toEqual({ ...own, hostname: HOST });
    });
  });

  test('none for other protocols; none that only browsers resolve, unless players must use the gateway', () => {
    for (const protocol of ['tcp', 'tcp_tls', 'udp'] as const) {
      expect(createAddressOf(BASE)({ protocol, gateway_name: NAME })).toBeUndefined();
    }
    const local = createAddressOf({ ...BASE, servers_domain: 'servers.localhost' });
    expect(local({ protocol: 'http', gateway_name: NAME })).toBeUndefined();
    const must_come = local({ protocol: 'http', gateway_name: NAME, presence: 'gateway' });
    expect(must_come?.hostname).toBe(`${NAME}.servers.localhost`);
  });
});
