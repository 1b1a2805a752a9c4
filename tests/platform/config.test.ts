import { describe, expect, test } from 'bun:test';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { readConfig } from '../../src/config.ts';
import { StartError } from '../../src/platform/errors.ts';
import { Settings } from '../../src/settings.ts';
import { throwawaySettings } from '../../src/throwaway-settings.ts';
import { refusalOf } from '../support/refusal.ts';

const refusal = (settings: Record<string, string>): string => refusalOf(StartError, () => readConfig(settings)).message;

/** The invalid value, and the expectation that stands before the setting's own description. */
const WRONG: [name: keyof Settings, value: string, expectation: string][] = [
  ['MUSTER_HOST', 'my host', 'expected an address like 127.0.0.1 or ::1, or a name'],
  ['MUSTER_HOST', '[::1]', 'expected an address like 127.0.0.1 or ::1, or a name'],
  ...['0', '65536', '-1', '80.5', '0x50', '8e3', 'true', ' ', 'http'].map((value): [keyof Settings, string, string] => [
    'MUSTER_PORT',
    value,
    'expected a whole number from 1 to 65535',
  ]),
  ['MUSTER_PUBLIC_URL', 'play.example.com', 'expected an address like https://play.example.com, without a path'],
  ['MUSTER_PUBLIC_URL', 'ftp://play.example.com', 'expected an address like https://play.example.com, without a path'],
  [
    'MUSTER_PUBLIC_URL',
    'https://play.example.com/api',
    'expected an address like https://play.example.com, without a path',
  ],
  [
    'MUSTER_PUBLIC_URL',
    'https://play.example.com?x',
    'expected an address like https://play.example.com, without a path',
  ],
  ['S3_ENDPOINT', 's3.example.com', 'expected an address like https://s3.example.com, without a path'],
  ['S3_ENDPOINT', 'https://s3.example.com/bucket', 'expected an address like https://s3.example.com, without a path'],
  [
    'S3_BUCKET',
    'My Bucket',
    'expected 3 to 63 lower-case letters, digits, dots and dashes, with a letter or digit at both ends',
  ],
  ['S3_REGION', 'eu central', 'expected letters, digits and dashes'],
  ['S3_PREFIX', '../up', 'expected names of folders like games or games/muster'],
  ['S3_ADDRESSING', 'virtual', 'expected one of path, host'],
  ['MUSTER_DISK_RESERVE_MB', '1048577', 'expected a whole number from 0 to 1048576'],
  ['MUSTER_DATABASE_POOL', '1', 'expected a whole number from 2 to 100'],
  ['MUSTER_DATABASE_POOL', '101', 'expected a whole number from 2 to 100'],
  ['MUSTER_TRUSTED_PROXIES', 'proxy.example.com', 'expected addresses and networks, separated by commas'],
  ['MUSTER_ACME_HOSTS', '*.example.com', 'expected public host names like play.example.com, separated by commas'],
  ['MUSTER_ACME_HOSTS', '192.0.2.1', 'expected public host names like play.example.com, separated by commas'],
  ['MUSTER_ACME_DIRECTORY', 'http://ca.example.com/dir', 'expected an address like https://ca.example.com/directory'],
  ['MUSTER_ACME_EMAIL', 'nobody', 'expected an address like admin@example.com'],
  ['MUSTER_TLS_LOCAL', 'yes', 'expected one of on, off'],
  ['MUSTER_HTTPS_PORT', '0', 'expected a whole number from 1 to 65535'],
  ['MUSTER_HTTP_PORT', '65536', 'expected a whole number from 1 to 65535'],
  ['MUSTER_LIMITS', 'true', 'expected one of on, off'],
  ['MUSTER_LIMITS_SCALE', '0', 'expected a whole number from 1 to 1000000'],
  ['MUSTER_LIMITS_SCALE', '1.5', 'expected a whole number from 1 to 1000000'],
  ['MUSTER_LOG', 'verbose', 'expected one of error, warn, info, debug, off'],
  ['MUSTER_LOG', 'INFO', 'expected one of error, warn, info, debug, off'],
  ['MUSTER_DEMO', 'yes', 'expected one of on, off'],
  ['MUSTER_PRINT_SECRETS', 'no', 'expected one of on, off'],
  ['MUSTER_SERVER_DISK_MB', '-1', 'expected a whole number from 0 to 16777216'],
  ['MUSTER_ISOLATION', 'yes', 'expected one of on, required, off'],
  ['MUSTER_CONTAINERS', 'yes', 'expected one of on, off'],
  ['MUSTER_CONTAINER_ENGINE', 'tcp://127.0.0.1:2375', 'expected an address that begins with unix:///'],
  ['MUSTER_KUBERNETES', 'kubeconfig', 'expected in-cluster, or a path that begins with /'],
  [
    'MUSTER_KUBERNETES_NAMESPACE',
    'My games',
    'expected at most 63 lower-case letters, digits and dashes, without a dash at either end',
  ],
  ['MUSTER_KUBERNETES_IMAGE', 'muster 1', 'expected the name of an image like registry.example.com/muster:1.2.3'],
  ['MUSTER_KUBERNETES_HOST', 'http://10.0.0.1', 'expected a host name or an address, without a scheme'],
  ['MUSTER_KUBERNETES_PORT', '0', 'expected a whole number from 1 to 65535'],
  [
    'MUSTER_KUBERNETES_REGISTRY',
    'registry',
    'expected a name in lower case with a dot or a port, like muster.example.com or muster:8443',
  ],
  ['MUSTER_KUBERNETES_AGONES', 'yes', 'expected one of on, off'],
  ['MUSTER_CONTAINERS_READ_ONLY', 'yes', 'expected one of on, off'],
  [
    'MUSTER_DATACENTER',
    'Local',
    'expected at most 16 lower-case letters, digits and dashes, without a dash at either end',
  ],
  [
    'MUSTER_DATACENTER',
    'a-very-long-name-id',
    'expected at most 16 lower-case letters, digits and dashes, without a dash at either end',
  ],
  ['MUSTER_DATACENTER_NAME', 'x'.repeat(65), 'expected at most 64 characters'],
  ...['50.11', '50.11;8.68', '50,11,8,68', 'N50,E8', '5e1,8', '050.11,8', '50.11,', '50.11,  8.68', '+50,8'].map(
    (value): [keyof Settings, string, string] => [
      'MUSTER_DATACENTER_COORDINATES',
      value,
      'expected two numbers like 50.11,8.68, with at most nine decimals each',
    ],
  ),
  ['MUSTER_SERVER_HOST', 'https://play.example.com', 'expected a host name or an address, without a scheme'],
  ['MUSTER_SITES_DOMAIN', '.example.com', 'expected a domain in lower case like sites.example.com'],
  ['MUSTER_SERVERS_DOMAIN', '-', 'expected a domain in lower case like games.example.com'],
  ['MUSTER_RELAYS', 'udp', 'expected one of tls, all'],
  ['MUSTER_RELAY_PROXY_PROTOCOL', 'v3', 'expected one of off, v1, v2'],
  ['MUSTER_SERVER_PORTS', '26000', 'expected two ports like 26000-31999'],
  ['MUSTER_SERVER_PORTS', '26000-', 'expected two ports like 26000-31999'],
  ['MUSTER_SERVERS_MAX', '0', 'expected a whole number from 1 to 10000'],
  ['MUSTER_SERVERS_PER_GROUP_MAX', '0', 'expected a whole number from 1 to 10000'],
  ['MUSTER_RESOURCES_PERCENT', '0', 'expected a whole number from 1 to 100000'],
  ['MUSTER_GATEWAY_ADDRESS_MINUTE_MIB', '0', 'expected a whole number from 1 to 1048576'],
  ['MUSTER_GATEWAY_DRAIN_MS', '-1', 'expected a whole number from 0 to 86400000'],
  ['MUSTER_GATEWAY_SERVER_MINUTE_MIB', '0', 'expected a whole number from 1 to 1048576'],
  ['MUSTER_MACHINE_LOST_MS', '999', 'expected a whole number from 1000 to 3600000'],
  ['MUSTER_MACHINE_REST_MS', '604800001', 'expected a whole number from 1000 to 604800000'],
  ['MUSTER_READY_TIMEOUT_MS', '999', 'expected a whole number from 1000 to 604800000'],
  ['MUSTER_SEAT_TIMEOUT_MS', '604800001', 'expected a whole number from 1000 to 604800000'],
  ['MUSTER_PLAYER_TIMEOUT_MS', '8h', 'expected a whole number from 1000 to 31449600000'],
  ['MUSTER_REQUEST_TIMEOUT_MS', '240001', 'expected a whole number from 1000 to 240000'],
  ['MUSTER_HCAPTCHA_SITE_KEY', 'x'.repeat(37), 'expected at most 36 characters'],
  ['MUSTER_TURNSTILE_SITE_KEY', 'x'.repeat(31), 'expected at most 30 characters'],
  ['MUSTER_HCAPTCHA_URL', 'https://hcaptcha.example', 'expected an address like https://captcha.example.com/verify'],
  ['MUSTER_TURNSTILE_URL', 'https://t.example/verify?x', 'expected an address like https://captcha.example.com/verify'],
  ['MUSTER_CAPTCHA_TIMEOUT_MS', '30001', 'expected a whole number from 100 to 30000'],
  ['MUSTER_CAPTCHA_WHEN_DOWN', 'on', 'expected one of closed, open'],
  ['MUSTER_WATCH_HOLD_MS', '60000', 'expected a whole number from 1000 to 50000'],
  ['MUSTER_VERIFICATION_TIMEOUT_MS', '99', 'expected a whole number from 100 to 60000'],
  ['MUSTER_OUTBOUND_ALLOW', 'x,'.repeat(2_049), 'expected at most 4096 characters'],
  ['MUSTER_OWN_HOSTS', 'a b', 'expected host names, separated by commas'],
  ['MUSTER_DOMAINS_ALLOW', 'a.example=x', 'expected domains, each alone or with =NAMESPACE_ID, separated by commas'],
  ['MUSTER_NAME_SERVERS', 'dns.example', 'expected addresses, each with a port or without, separated by commas'],
  ['MUSTER_PICTURES_DAY_MIB', '0', 'expected a whole number from 1 to 1048576'],
  ['MUSTER_PICTURES_MIB', '0.5', 'expected a whole number from 1 to 1048576'],
  ['MUSTER_HISTORY_DAYS', '36501', 'expected a whole number from 0 to 36500'],
  ['MUSTER_AUDIT_DAYS', '36501', 'expected a whole number from 0 to 36500'],
  ['MUSTER_UNPACKED_DAYS', '-1', 'expected a whole number from 0 to 36500'],
  ['MUSTER_RECEIPTS_PER_SECOND_MAX', '10001', 'expected a whole number from 0 to 10000'],
  ['MUSTER_WATCHERS_MAX', '0', 'expected a whole number from 1 to 10000000'],
  ['MUSTER_WATCHERS_PER_CALLER_MAX', 'many', 'expected a whole number from 1 to 10000000'],
  ['MUSTER_SOCKETS_MAX', '1000001', 'expected a whole number from 1 to 1000000'],
  ['MUSTER_SOCKETS_PER_CALLER_MAX', '-1', 'expected a whole number from 1 to 1000000'],
  ['MUSTER_CONNECTIONS_PER_ADDRESS_MAX', '0', 'expected a whole number from 1 to 1000000'],
];

describe('config: an invalid setting is refused with its name, its value and what is expected:', () => {
  test.each(WRONG)('%s = "%s"', (name, value, expectation) => {
    const { description } = Settings.properties[name];
    expect(refusal({ [name]: value })).toBe(
      `${name} is "${value}", which cannot be used (${expectation}). ${description}`,
    );
  });

  test('every setting with a form of its own is among the cases above', () => {
    const tried = new Set<string>(WRONG.map(([name]) => name));
    const others = Object.keys(Settings.properties).filter((name) => !tried.has(name));
    // Secrets are below; files are in the tests of their readers.
    expect(others.toSorted()).toEqual(
      [
        'MUSTER_ACME_CA',
        'MUSTER_CONTAINER_BASE',
        'MUSTER_DATA',
        'MUSTER_ADDRESS_CLASSES',
        'MUSTER_IP_DATABASE',
        'DATABASE_URL',
        'S3_ACCESS_KEY_ID',
        'S3_SECRET_ACCESS_KEY',
        'REDIS_URL',
        'MUSTER_PROXY_SECRET',
        'UPSTASH_REDIS_REST_URL',
        'UPSTASH_REDIS_REST_TOKEN',
        'MUSTER_HCAPTCHA_SECRET_KEY',
        'MUSTER_TLS_CERTIFICATE',
        'MUSTER_TLS_KEY',
        'MUSTER_TURNSTILE_SECRET_KEY',
      ].toSorted(),
    );
  });

  test('every pattern has words that say what is expected', () => {
    const patterns = Object.entries(Settings.properties).filter(([, { pattern }]) => pattern !== undefined);
    const without_words = patterns.filter(([, { expected }]) => typeof expected !== 'string');
    expect(patterns.length).toBeGreaterThan(0);
    expect(without_words.map(([name]) => name)).toEqual([]);
  });

  const IMPOSSIBLE: [settings: Record<string, string>, message: string][] = [
    [
      { MUSTER_HCAPTCHA_SITE_KEY: 'x' },
      'MUSTER_HCAPTCHA_SITE_KEY is set, but MUSTER_HCAPTCHA_SECRET_KEY is not: set both, or neither.',
    ],
    [
      { MUSTER_TURNSTILE_SECRET_KEY: 'hunter2' },
      'MUSTER_TURNSTILE_SECRET_KEY is set, but MUSTER_TURNSTILE_SITE_KEY is not: set both, or neither.',
    ],
    [
      { MUSTER_TRUSTED_PROXIES: '127.0.0.1' },
      'MUSTER_TRUSTED_PROXIES has 127.0.0.1, an address of this machine, which its game servers have too: set MUSTER_PROXY_SECRET, and let the proxy send it in the header Muster-Proxy-Secret.',
    ],
    [{ MUSTER_HOST: '999.1.1.1' }, 'MUSTER_HOST is "999.1.1.1": expected an address like 127.0.0.1 or ::1, or a name.'],
    [{ MUSTER_HOST: ':::' }, 'MUSTER_HOST is ":::": expected an address like 127.0.0.1 or ::1, or a name.'],
    [
      { MUSTER_PUBLIC_URL: 'http://play.example.com:99999' },
      'MUSTER_PUBLIC_URL is "http://play.example.com:99999": expected an address like https://play.example.com.',
    ],
    [
      { MUSTER_PUBLIC_URL: 'http://[::1/' },
      'MUSTER_PUBLIC_URL is "http://[::1": expected an address like https://play.example.com.',
    ],
    [
      { MUSTER_SERVER_PORTS: '31999-26000' },
      'MUSTER_SERVER_PORTS is "31999-26000": expected two ports from 1024 to 65535, the lower one first, like 26000-31999.',
    ],
    ...['90.1,0', '-91,0', '0,180.5', '0,-181'].map((coordinates): [Record<string, string>, string] => [
      { MUSTER_DATACENTER_COORDINATES: coordinates },
      `MUSTER_DATACENTER_COORDINATES is "${coordinates}": expected a latitude from -90 to 90 and a longitude from -180 to 180, like 50.11,8.68.`,
    ]),
    ...['1.2.3', '1.2.3.4:65536', '1.2.3.4:0', '[::1]:65536', '[::1', 'abc'].map(
      (server): [Record<string, string>, string] => [
        { MUSTER_NAME_SERVERS: `192.0.2.53, [2001:db8::53]:53, 2001:db8::53, ${server}` },
        `MUSTER_NAME_SERVERS has "${server}": expected an address, with a port or without.`,
      ],
    ),
    ...['http://inside', 'inside:0', '10.0.0.0/33', 'a b'].map((entry): [Record<string, string>, string] => [
      { MUSTER_OUTBOUND_ALLOW: `10.0.0.0/8, ${entry}` },
      `MUSTER_OUTBOUND_ALLOW has "${entry}": expected a network, an address or a host, with a port or without.`,
    ]),
    [
      { MUSTER_SERVER_PORTS: '80-90' },
      'MUSTER_SERVER_PORTS is "80-90": expected two ports from 1024 to 65535, the lower one first, like 26000-31999.',
    ],
    [
      { MUSTER_SERVER_PORTS: '60000-65536' },
      'MUSTER_SERVER_PORTS is "60000-65536": expected two ports from 1024 to 65535, the lower one first, like 26000-31999.',
    ],
    [
      { MUSTER_SERVER_PORTS: '8000-8080' },
      'MUSTER_SERVER_PORTS is "8000-8080", which includes MUSTER_PORT (8080): choose a range without it.',
    ],
    [
      { MUSTER_SERVER_PORTS: '9000-9000', MUSTER_PORT: '9000' },
      'MUSTER_SERVER_PORTS is "9000-9000", which includes MUSTER_PORT (9000): choose a range without it.',
    ],
    ...['MUSTER_HTTPS_PORT', 'MUSTER_HTTP_PORT'].map((name): [Record<string, string>, string] => [
      { MUSTER_SERVER_PORTS: '9000-9100', MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: '8443', [name]: '9050' },
      `MUSTER_SERVER_PORTS is "9000-9100", which includes ${name} (9050): choose a range without it.`,
    ]),
    ...['30000', '30001'].map((hold_ms): [Record<string, string>, string] => [
      { MUSTER_WATCH_HOLD_MS: hold_ms, MUSTER_REQUEST_TIMEOUT_MS: '30000' },
      `MUSTER_WATCH_HOLD_MS (${hold_ms}) must be below MUSTER_REQUEST_TIMEOUT_MS (30000): otherwise long polls time out before they answer.`,
    ]),
    [
      { UPSTASH_REDIS_REST_URL: 'https://eu1-x.upstash.io' },
      'The settings of Upstash are incomplete: set UPSTASH_REDIS_REST_TOKEN too, or neither of the two.',
    ],
    [
      { UPSTASH_REDIS_REST_TOKEN: 'x' },
      'The settings of Upstash are incomplete: set UPSTASH_REDIS_REST_URL too, or neither of the two.',
    ],
    [
      { UPSTASH_REDIS_REST_URL: 'https://eu1-x.upstash.io', UPSTASH_REDIS_REST_TOKEN: 'x', REDIS_URL: 'redis://h' },
      'REDIS_URL and UPSTASH_REDIS_REST_URL are both set: set only one of them.',
    ],
    ...[
      { name: 'MUSTER_PUBLIC_URL', value: 'https://example.com', host: 'example.com' },
      { name: 'MUSTER_PUBLIC_URL', value: 'https://Play.example.com:8443', host: 'play.example.com' },
      { name: 'MUSTER_OWN_HOSTS', value: 'localhost, API.example.com', host: 'API.example.com' },
    ].map(({ name, value, host }): [Record<string, string>, string] => [
      { MUSTER_SITES_DOMAIN: 'example.com', [name]: value },
      `MUSTER_SITES_DOMAIN is "example.com", which includes the host of the API, ${host}: uploaded pages could set its cookies. Give sites a domain of their own, such as sites.example.com.`,
    ]),
    [
      { REDIS_URL: 'redis://h:99999' },
      'REDIS_URL is not a valid address: write it like the example in "muster --help".',
    ],
  ];
  test.each(IMPOSSIBLE)('%j', (settings, message) => {
    expect(refusal(settings)).toBe(message);
  });
});

describe('config: an unknown setting is refused:', () => {
  test.each(['MUSTER_PROT', 'MUSTER_', 'MUSTER_port', 'MUSTER_DATABASE_URL', 'MUSTER___PROTO__'])('%s', (name) => {
    expect(refusal({ [name]: 'hunter2' })).toBe(`${name} is not a setting; "muster --help" lists them all.`);
  });

  test.each([
    ['MUSTER_SERVICE_HOST', '10.96.0.7'],
    ['MUSTER_SERVICE_PORT_HTTP', '8080'],
    ['MUSTER_PORT_8080_TCP_ADDR', '10.96.0.7'],
    ['MUSTER_POSTGRES_SERVICE_PORT', '5432'],
    ['MUSTER_POSTGRES_PORT', 'tcp://10.96.0.8:5432'],
    ['MUSTER_PORT', 'tcp://10.96.0.7:8080'],
  ])('with the way out if Kubernetes set it: %s = "%s"', (name, value) => {
    expect(refusal({ [name]: value })).toEndWith(
      ' Kubernetes sets it for a Service whose name begins with "muster": set enableServiceLinks: false in the pod.',
    );
  });

  test('settings of other programs are ignored', () => {
    expect(readConfig({ PORT: '1', DATABASE: 'x', XMUSTER_PORT: '1', muster_port: '1' }).port).toBe(8080);
  });
});

describe('config: a refusal does not repeat a password:', () => {
  const WITH_SECRET: Record<string, string>[] = [
    { MUSTER_HCAPTCHA_SECRET_KEY: `hunter2${'x'.repeat(42)}` },
    { MUSTER_TURNSTILE_SECRET_KEY: `hunter2${'x'.repeat(40)}` },
    { MUSTER_TURNSTILE_SECRET_KEY: 'hunter2' },
    { DATABASE_URL: 'mysql://muster:hunter2@database/muster' },
    { DATABASE_URL: 'muster:hunter2@database/muster' },
    { MUSTER_PROXY_SECRET: 'hunter2' },
    { MUSTER_PUBLIC_URL: 'https://muster:hunter2@play.example.com' },
    { MUSTER_HOST: 'http://muster:hunter2@play.example.com' },
    { REDIS_URL: 'http://:hunter2@redis' },
    { REDIS_URL: 'redis://:hunter2@redis:99999' },
    { UPSTASH_REDIS_REST_URL: 'https://u:hunter2@eu1-x.upstash.io' },
    { UPSTASH_REDIS_REST_TOKEN: 'hunter2 ' },
    { S3_ENDPOINT: 'https://key:hunter2@s3.example.com' },
    { S3_ACCESS_KEY_ID: 'hunter2 ' },
    { S3_SECRET_ACCESS_KEY: 'hunter2 ' },
  ];
  test.each(WITH_SECRET)('%j', (settings) => {
    const message = refusal(settings);
    expect(message).toContain(Object.keys(settings).join());
    expect(message).not.toContain('hunter2');
  });

  test('a database address without a scheme is refused with an example', () => {
    expect(refusal({ DATABASE_URL: 'localhost/muster' })).toBe(
      'DATABASE_URL cannot be used (expected an address that begins with postgres:// or postgresql://). PostgreSQL 15 or later to use instead of the embedded one: postgres://user:password@host/database.',
    );
  });
});

describe('config: valid settings', () => {
  test('may all be left out, and an empty one counts as left out', () => {
    const empty = Object.fromEntries(Object.keys(Settings.properties).map((name) => [name, '']));
    const config = readConfig({});
    expect(readConfig(empty)).toEqual(config);
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      public_url: 'http://127.0.0.1:8080',
      local_url: 'http://127.0.0.1:8080',
      database_url: undefined,
      s3: undefined,
      trusted_proxies: [],
      limits: { is_on: true, scale: 1, store: undefined },
      demo: true,
      datacenter: { slug: 'local', name: 'Local', coordinates: undefined },
      server_host: '127.0.0.1',
      servers: { server_ports: { min: 26_000, max: 31_999 } },
      lobbies: {
        seat_timeout_ms: 120_000,
        ready_timeout_ms: 300_000,
        player_timeout_ms: 28_800_000,
        receipts_per_second_max: 50,
      },
      request_timeout_ms: 50_000,
      watch: { watch_hold_ms: 40_000, watchers_max: 20_000, watchers_per_caller_max: 128 },
      sockets: { sockets_max: 20_000, sockets_per_caller_max: 64 },
    });
  });

  test.each(['sites.play.example.com', 'sites.example.com', 'example.org'])(
    'give sites a domain that does not include the API: %s',
    (domain) => {
      const settings = { MUSTER_PUBLIC_URL: 'https://play.example.com', MUSTER_SITES_DOMAIN: domain };
      expect(readConfig(settings).sites_domain).toBe(domain);
    },
  );

  test('stay text even if they consist of digits', () => {
    const { datacenter, data_directory } = readConfig({
      MUSTER_DATACENTER: '1',
      MUSTER_DATACENTER_NAME: 'true',
      MUSTER_DATA: '7',
    });
    expect(datacenter).toEqual({ slug: '1', name: 'true', coordinates: undefined });
    expect(data_directory).toBe(resolve('7'));
  });

  test.each([
    ['50.11,8.68', 50.11, 8.68],
    ['-33.87, 151.21', -33.87, 151.21],
    ['90,-180', 90, -180],
    ['0,0', 0, 0],
  ])('give the coordinates of the datacenter: %s', (text, latitude, longitude) => {
    const { datacenter } = readConfig({ MUSTER_DATACENTER_COORDINATES: text });
    expect(datacenter.coordinates).toEqual({ latitude, longitude });
  });

  const ADDRESSES: [settings: Record<string, string>, expected: object][] = [
    [
      { MUSTER_HOST: '0.0.0.0', MUSTER_PORT: '9000' },
      { public_url: 'http://127.0.0.1:9000', local_url: 'http://127.0.0.1:9000', server_host: '127.0.0.1' },
    ],
    [{ MUSTER_HOST: '::' }, { public_url: 'http://127.0.0.1:8080', local_url: 'http://127.0.0.1:8080' }],
    [{ MUSTER_HOST: '::1' }, { public_url: 'http://[::1]:8080', local_url: 'http://[::1]:8080', server_host: '::1' }],
    [
      { MUSTER_HOST: '10.0.0.5', MUSTER_PUBLIC_URL: 'https://play.example.com/' },
      {
        public_url: 'https://play.example.com',
        local_url: 'http://10.0.0.5:8080',
        server_host: 'play.example.com',
      },
    ],
    [
      { MUSTER_PUBLIC_URL: 'https://play.example.com:8443', MUSTER_SERVER_HOST: 'rooms.example.com' },
      { public_url: 'https://play.example.com:8443', server_host: 'rooms.example.com' },
    ],
    [
      { MUSTER_SERVER_PORTS: '8081-8081', MUSTER_WATCH_HOLD_MS: '1000', MUSTER_REQUEST_TIMEOUT_MS: '1001' },
      {
        servers: { server_ports: { min: 8081, max: 8081 } },
        watch: { watch_hold_ms: 1_000 },
        request_timeout_ms: 1_001,
      },
    ],
  ];
  test.each(ADDRESSES)('%j', (settings, expected) => {
    expect(readConfig(settings)).toMatchObject(expected);
  });
});

/** Settings of a service whose game servers run in a cluster. */
const CLUSTER = {
  MUSTER_KUBERNETES: 'in-cluster',
  MUSTER_KUBERNETES_IMAGE: 'muster:1',
  MUSTER_KUBERNETES_HOST: 'muster',
  MUSTER_HOST: '0.0.0.0',
};

test('config: the port for pods is not another port of the service', () => {
  const pod_port = { MUSTER_KUBERNETES_PORT: '9000' };
  const https = { MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: '9000' };
  const conflictWith = (name: string) => `${name} and MUSTER_KUBERNETES_PORT are both 9000: set another port.`;
  expect(refusal({ ...CLUSTER, ...pod_port, MUSTER_PORT: '9000' })).toBe(conflictWith('MUSTER_PORT'));
  expect(refusal({ ...CLUSTER, ...pod_port, ...https })).toBe(conflictWith('MUSTER_HTTPS_PORT'));
  expect(readConfig({ ...CLUSTER, ...pod_port }).kubernetes?.port).toBe(9_000);
  // Without a cluster, the port is not opened.
  expect(readConfig({ ...pod_port, MUSTER_PORT: '9000' }).port).toBe(9_000);
});

test('config: the resources of servers are a part of those of the machine, without a limit by default and for a cluster', () => {
  const resourcesOf = (settings: Record<string, string>) => readConfig(settings).servers.resources_max;
  expect(resourcesOf({})).toBeUndefined();
  const all = resourcesOf({ MUSTER_RESOURCES_PERCENT: '100' });
  expect(all?.cpu).toBe(availableParallelism() * 1_000);
  expect(all?.memory).toBeGreaterThan(256);
  const double = resourcesOf({ MUSTER_RESOURCES_PERCENT: '200' });
  expect(double).toEqual({ cpu: 2 * (all?.cpu ?? 0), memory: 2 * (all?.memory ?? 0) });
  expect(resourcesOf({ ...CLUSTER, MUSTER_RESOURCES_PERCENT: '100' })).toBeUndefined();
});

test('a throwaway service keeps its defaults where the environment has empty variables, and keeps unknown ones to refuse', () => {
  const environment = {
    MUSTER_LIMITS: '',
    MUSTER_LOG: 'info',
    MUSTER_SEAT_TIMOUT_MS: '1',
    MUSTER_PORT: '1',
    DATABASE_URL: 'x',
  };
  const own = { data_directory: '/data', port: 9000, server_ports: '9001-9100' };
  const { MUSTER_LIMITS, MUSTER_LOG, MUSTER_SEAT_TIMOUT_MS, MUSTER_PORT, DATABASE_URL } = throwawaySettings(
    environment,
    own,
  );
  expect([MUSTER_LIMITS, MUSTER_LOG, MUSTER_SEAT_TIMOUT_MS]).toEqual(['off', 'info', '1']);
  expect([MUSTER_PORT, DATABASE_URL]).toEqual(['9000', undefined]);
});
