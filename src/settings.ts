import { type Static, Type } from '@sinclair/typebox';
import { STORE_SHAPES } from './platform/limits/store-settings.ts';
import { S3_SHAPES } from './platform/objects/s3-settings.ts';

const PORT_MAX = 65_535;
const HOST_NAME = '[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?';
const ALLOWED_DOMAIN = `([*]|([*][.])?${HOST_NAME})(=[0-9A-Fa-f-]{36})?`;
const WEEK_MS = 7 * 24 * 3_600_000;

/** Every setting of the service, as the environment names it. This shape is the only list: `--help` prints it. */
export const Settings = Type.Object({
  MUSTER_HOST: Type.String({
    default: '127.0.0.1',
    pattern: '^[A-Za-z0-9.:-]+$',
    description: 'Address to listen on. 0.0.0.0 to be reachable from other machines.',
  }),
  MUSTER_PORT: Type.Integer({ default: 8080, minimum: 1, maximum: PORT_MAX, description: 'Port to listen on.' }),
  MUSTER_DATA: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Directory for everything that is kept. Default: ./muster-data (see README for root).',
    }),
  ),
  MUSTER_DISK_RESERVE_MB: Type.Integer({
    default: 512,
    minimum: 0,
    maximum: 1_048_576,
    description:
      "Megabytes of the data directory's disk that are kept free for the database: uploads and unpacking are refused, and logs dropped, below.",
  }),
  MUSTER_PUBLIC_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@]+/?$',
      description: 'Address that clients use, when it is not http://HOST:PORT (behind a proxy, for one).',
    }),
  ),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description: 'PostgreSQL 15 or later to use instead of the embedded one: postgres://user:password@host/database.',
    }),
  ),
  ...S3_SHAPES,
  MUSTER_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f.:/, ]+$',
      description:
        'Proxies in front, whose X-Forwarded-For says who the client is: addresses and networks, like 127.0.0.1,10.0.0.0/8.',
    }),
  ),
  MUSTER_PROXY_SECRET: Type.Optional(
    Type.String({
      pattern: '^[!-~]{16,256}$',
      description:
        'Secret that these proxies send in the header Muster-Proxy-Secret. Needed for a proxy on this machine, where game servers have its address.',
    }),
  ),
  MUSTER_LIMITS: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description: 'Whether it is limited how often anybody may call: on or off.',
  }),
  MUSTER_LIMITS_SCALE: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 1_000_000,
    description: 'How many times the usual limits: more where many players come from one address.',
  }),
  ...STORE_SHAPES,
  MUSTER_DATABASE_POOL: Type.Integer({
    default: 10,
    minimum: 2,
    maximum: 100,
    description:
      'Connections to PostgreSQL; four more listen for changes, give seats, note who has come and what lobbies say.',
  }),
  MUSTER_LOG: Type.Union(
    [Type.Literal('error'), Type.Literal('warn'), Type.Literal('info'), Type.Literal('debug'), Type.Literal('off')],
    { default: 'info', description: 'What is logged to stderr: off, error, warn, info or debug.' },
  ),
  MUSTER_DEMO: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description: 'Whether the first start makes the demo game: on or off.',
  }),
  MUSTER_DATACENTER: Type.String({
    default: 'local',
    pattern: '^[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?$',
    description: 'Name id of the datacenter (region) this machine stands in.',
  }),
  MUSTER_DATACENTER_NAME: Type.String({
    default: 'Local',
    minLength: 1,
    maxLength: 64,
    description: 'The same as players read it.',
  }),
  MUSTER_DATACENTER_COORDINATES: Type.Optional(
    Type.String({
      pattern: '^-?[0-9]{1,2}([.][0-9]{1,9})?, ?-?[0-9]{1,3}([.][0-9]{1,9})?$',
      description: 'Where that is: latitude and longitude in degrees, like 50.11,8.68.',
    }),
  ),
  MUSTER_SERVER_HOST: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9.:-]+$',
      description: 'Host name or address at which players reach game servers. Default: the host of MUSTER_PUBLIC_URL.',
    }),
  ),
  MUSTER_SITES_DOMAIN: Type.String({
    default: 'sites.localhost',
    pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
    description:
      'Domain below which sites are served: game--namespace.DOMAIN. Point *.DOMAIN at this service; not the domain of the API.',
  }),
  MUSTER_OWN_HOSTS: Type.Optional(
    Type.String({
      pattern: `^${HOST_NAME}(, ?${HOST_NAME})*$`,
      description: 'Further host names by which the API is reached, separated by commas: no site can have them.',
    }),
  ),
  MUSTER_DOMAINS_ALLOW: Type.Optional(
    Type.String({
      pattern: `^${ALLOWED_DOMAIN}(, ?${ALLOWED_DOMAIN})*$`,
      description:
        'Domains that sites may have without a proof by DNS: *.example.com, or play.example.com=NAMESPACE_ID for one namespace; * for all.',
    }),
  ),
  MUSTER_NAME_SERVERS: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f.:,\\[\\] ]+$',
      description:
        'Name servers that are asked for the proof of a domain, like 192.0.2.53 or [2001:db8::53]:53. Default: those of this machine.',
    }),
  ),
  MUSTER_SERVER_PORTS: Type.String({
    default: '26000-31999',
    pattern: '^[0-9]{1,5}-[0-9]{1,5}$',
    description: 'Ports that game servers are given, first and last.',
  }),
  MUSTER_SERVERS_MAX: Type.Integer({
    default: 500,
    minimum: 1,
    maximum: 10_000,
    description: 'Game servers that run on this machine at one time.',
  }),
  MUSTER_SERVERS_PER_GROUP_MAX: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10_000,
      description:
        "Of them, those of one developer group's games, so that others have room. Default: three quarters of MUSTER_SERVERS_MAX.",
    }),
  ),
  MUSTER_READY_TIMEOUT_MS: Type.Integer({
    default: 300_000,
    minimum: 1_000,
    maximum: WEEK_MS,
    description: 'Time a lobby has to call ready.',
  }),
  MUSTER_SEAT_TIMEOUT_MS: Type.Integer({
    default: 120_000,
    minimum: 1_000,
    maximum: WEEK_MS,
    description: 'Time a player has to connect after his seat was given.',
  }),
  MUSTER_PLAYER_TIMEOUT_MS: Type.Integer({
    default: 28_800_000,
    minimum: 1_000,
    maximum: 52 * WEEK_MS,
    description: 'Time after which a player is removed even if his lobby never said so.',
  }),
  MUSTER_REQUEST_TIMEOUT_MS: Type.Integer({
    default: 50_000,
    minimum: 1_000,
    maximum: 240_000,
    description: 'Time one request may take, waiting for a lobby included.',
  }),
  MUSTER_VERIFICATION_TIMEOUT_MS: Type.Integer({
    default: 10_000,
    minimum: 100,
    maximum: 60_000,
    description: "Time that a game's own server has to verify a player (external verification).",
  }),
  MUSTER_OUTBOUND_ALLOW: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description:
        'Where such requests may go besides the Internet, separated by commas: 10.1.0.0/16, 10.1.2.3:8080, verify.internal:8080.',
    }),
  ),
  MUSTER_IP_DATABASE: Type.Optional(
    Type.String({
      minLength: 1,
      description: "File that says where addresses are, in MaxMind's format (GeoLite2 City, for one).",
    }),
  ),
  MUSTER_RECEIPTS_PER_SECOND_MAX: Type.Integer({
    default: 50,
    minimum: 0,
    maximum: 10_000,
    description: 'Finds, joins and creates of a second of which it is kept for an hour why they came out as they did.',
  }),
  MUSTER_HCAPTCHA_SITE_KEY: Type.Optional(
    Type.String({
      maxLength: 36,
      description: 'Site key of hCaptcha for versions that ask for it without keys of their own.',
    }),
  ),
  MUSTER_HCAPTCHA_SECRET_KEY: Type.Optional(
    Type.String({ maxLength: 42, description: 'The secret key that belongs to it.' }),
  ),
  MUSTER_TURNSTILE_SITE_KEY: Type.Optional(
    Type.String({ maxLength: 30, description: 'The same for Turnstile; GET /cloud/bootstrap shows it.' }),
  ),
  MUSTER_TURNSTILE_SECRET_KEY: Type.Optional(
    Type.String({ maxLength: 40, description: 'The secret key that belongs to it.' }),
  ),
  MUSTER_HCAPTCHA_URL: Type.String({
    default: 'https://api.hcaptcha.com/siteverify',
    pattern: '^https?://[^/?#@]+/[^?#@]*$',
    description: 'Where it is asked whether a captcha of hCaptcha was solved.',
  }),
  MUSTER_TURNSTILE_URL: Type.String({
    default: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    pattern: '^https?://[^/?#@]+/[^?#@]*$',
    description: 'The same for Turnstile.',
  }),
  MUSTER_CAPTCHA_TIMEOUT_MS: Type.Integer({
    default: 5_000,
    minimum: 100,
    maximum: 30_000,
    description: 'Time that takes at most, asking a second time included.',
  }),
  MUSTER_CAPTCHA_WHEN_DOWN: Type.Union([Type.Literal('closed'), Type.Literal('open')], {
    default: 'closed',
    description:
      'Whether requests whose captcha cannot be checked, because its provider is down, pass: closed or open.',
  }),
  MUSTER_ADDRESS_CLASSES: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'File of networks that are a vpn, proxy, tor or hosting, a line each: 192.0.2.0/24 vpn.',
    }),
  ),
  MUSTER_PICTURES_DAY_MIB: Type.Integer({
    default: 1_024,
    minimum: 1,
    maximum: 1_048_576,
    description: 'MiB of pictures that a game, the players of a namespace, or a person may upload in a day.',
  }),
  MUSTER_PICTURES_MIB: Type.Integer({
    default: 8_192,
    minimum: 1,
    maximum: 1_048_576,
    description: 'MiB of pictures that these may have in all.',
  }),
  MUSTER_WATCH_HOLD_MS: Type.Integer({
    default: 40_000,
    minimum: 1_000,
    maximum: 240_000,
    description: 'Time a long poll waits for a change before it answers with what is.',
  }),
  MUSTER_WATCHERS_MAX: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Long polls and subscriptions of WebSockets that may wait at one time.',
  }),
  MUSTER_WATCHERS_PER_CALLER_MAX: Type.Integer({
    default: 128,
    minimum: 1,
    maximum: 10_000_000,
    description: 'The same for each caller: for each address, where a token is shared by all players.',
  }),
  MUSTER_SOCKETS_MAX: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'WebSockets that may be open at one time.',
  }),
  MUSTER_SOCKETS_PER_CALLER_MAX: Type.Integer({
    default: 64,
    minimum: 1,
    maximum: 1_000_000,
    description: 'The same for each address, and for each caller.',
  }),
});

export type Settings = Static<typeof Settings>;
