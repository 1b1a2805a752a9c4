import { join, resolve } from 'node:path';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { canBeEnteredByOthers } from './platform/data-directory.ts';
import { StartError } from './platform/errors.ts';
import { readS3Settings, S3_SHAPES, type S3Settings } from './platform/objects/s3-settings.ts';

const PORT_MAX = 65_535;
const WEEK_MS = 7 * 24 * 3_600_000;
/** Settings whose values are not repeated; a database address holds a password. */
const SECRETS = ['DATABASE_URL', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'];

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
  MUSTER_DATABASE_POOL: Type.Integer({
    default: 10,
    minimum: 2,
    maximum: 100,
    description: 'Connections to PostgreSQL; one more listens for changes.',
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

/** What the service runs with: the settings, completed and checked against each other. */
export interface Config {
  host: string;
  port: number;
  /** Absolute. */
  data_directory: string;
  /** Without a slash at the end. */
  public_url: string;
  /** Where processes on this machine reach the service. */
  local_url: string;
  database_url: string | undefined;
  database_pool: number;
  /** Undefined: objects are files in the data directory. */
  s3: S3Settings | undefined;
  log: Settings['MUSTER_LOG'];
  demo: boolean;
  datacenter: { slug: string; name: string };
  server_host: string;
  sites_domain: string;
  server_ports: { min: number; max: number };
  servers_max: number;
  ready_timeout_ms: number;
  seat_timeout_ms: number;
  player_timeout_ms: number;
  request_timeout_ms: number;
  watch_hold_ms: number;
  watchers_max: number;
  watchers_per_caller_max: number;
  sockets_max: number;
  sockets_per_caller_max: number;
}

/** Reads the settings. Throws {@link StartError} for a value that is wrong and for a MUSTER_ name that does not exist. */
export function readConfig(environment: Record<string, string | undefined> = process.env): Config {
  const settings = parseSettings(environment);
  const url_host = settings.MUSTER_HOST.includes(':') ? `[${settings.MUSTER_HOST}]` : settings.MUSTER_HOST;
  const any_address = ['0.0.0.0', '::'].includes(settings.MUSTER_HOST);
  const local_url = `http://${any_address ? '127.0.0.1' : url_host}:${settings.MUSTER_PORT}`;
  if (!URL.canParse(local_url)) {
    throw new StartError(
      `MUSTER_HOST is "${settings.MUSTER_HOST}": expected an address like 127.0.0.1 or ::1, or a name.`,
    );
  }
  if (settings.MUSTER_WATCH_HOLD_MS >= settings.MUSTER_REQUEST_TIMEOUT_MS) {
    throw new StartError(
      `MUSTER_WATCH_HOLD_MS (${settings.MUSTER_WATCH_HOLD_MS}) must be below MUSTER_REQUEST_TIMEOUT_MS (${settings.MUSTER_REQUEST_TIMEOUT_MS}): a poll that waits longer than a request may take never answers.`,
    );
  }
  const public_url = (settings.MUSTER_PUBLIC_URL ?? local_url).replace(/\/$/, '');
  if (!URL.canParse(public_url)) {
    throw new StartError(`MUSTER_PUBLIC_URL is "${public_url}": expected an address like https://play.example.com.`);
  }
  return {
    host: settings.MUSTER_HOST,
    port: settings.MUSTER_PORT,
    data_directory: resolve(settings.MUSTER_DATA ?? defaultDataDirectory()),
    public_url,
    local_url,
    database_url: settings.DATABASE_URL,
    database_pool: settings.MUSTER_DATABASE_POOL,
    s3: readS3Settings(settings, environment),
    log: settings.MUSTER_LOG,
    demo: settings.MUSTER_DEMO === 'on',
    datacenter: { slug: settings.MUSTER_DATACENTER, name: settings.MUSTER_DATACENTER_NAME },
    server_host: settings.MUSTER_SERVER_HOST ?? new URL(public_url).hostname.replace(/^\[|\]$/g, ''),
    sites_domain: settings.MUSTER_SITES_DOMAIN,
    server_ports: parsePortRange(settings.MUSTER_SERVER_PORTS, settings.MUSTER_PORT),
    servers_max: settings.MUSTER_SERVERS_MAX,
    ready_timeout_ms: settings.MUSTER_READY_TIMEOUT_MS,
    seat_timeout_ms: settings.MUSTER_SEAT_TIMEOUT_MS,
    player_timeout_ms: settings.MUSTER_PLAYER_TIMEOUT_MS,
    request_timeout_ms: settings.MUSTER_REQUEST_TIMEOUT_MS,
    watch_hold_ms: settings.MUSTER_WATCH_HOLD_MS,
    watchers_max: settings.MUSTER_WATCHERS_MAX,
    watchers_per_caller_max: settings.MUSTER_WATCHERS_PER_CALLER_MAX,
    sockets_max: settings.MUSTER_SOCKETS_MAX,
    sockets_per_caller_max: settings.MUSTER_SOCKETS_PER_CALLER_MAX,
  };
}

function parseSettings(environment: Record<string, string | undefined>): Settings {
  for (const name of Object.keys(environment)) {
    if (name.startsWith('MUSTER_') && !(name in Settings.properties)) {
      throw new StartError(`${name} is not a setting; "muster --help" lists them all.`);
    }
  }
  const given: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries(Settings.properties)) {
    const value = environment[name];
    if (value === undefined || value === '') continue;
    given[name] = shape.type === 'integer' && /^\d+$/.test(value) ? Number(value) : value;
  }
  const completed = Value.Default(Settings, given);
  const problem = Value.Errors(Settings, completed).First();
  if (problem) {
    const name = problem.path.slice(1);
    const shape = Settings.properties[name as keyof Settings];
    const shown = SECRETS.includes(name) ? '' : ` is "${blotUser(String(given[name]))}", which`;
    throw new StartError(`${name}${shown} cannot be used (${expectation(shape)}). ${shape.description}`);
  }
  return Value.Decode(Settings, completed);
}

/** Takes out of an address who is to be logged in, and with which password. */
function blotUser(text: string): string {
  return text.replace(/\/\/.*@/, '//…@');
}

function expectation(shape: TSchema): string {
  if (shape.type === 'integer') return `expected a whole number from ${shape.minimum} to ${shape.maximum}`;
  if (shape.maxLength !== undefined) return `expected at most ${shape.maxLength} characters`;
  if (Array.isArray(shape.anyOf)) return `expected one of ${shape.anyOf.map((one) => one.const).join(', ')}`;
  return `expected the form ${shape.pattern}`;
}

function parsePortRange(text: string, own_port: number): { min: number; max: number } {
  const [min = 0, max = 0] = text.split('-').map(Number);
  if (min < 1_024 || max > PORT_MAX || min > max) {
    throw new StartError(`MUSTER_SERVER_PORTS is "${text}": expected first-last within 1024 and ${PORT_MAX}.`);
  }
  if (own_port >= min && own_port <= max) {
    throw new StartError(
      `MUSTER_SERVER_PORTS is "${text}", where MUSTER_PORT (${own_port}) lies too: choose ports that are not the service's own.`,
    );
  }
  return { min, max };
}

/** PostgreSQL and game servers run as other users when we are root, so root's own folders cannot hold the data. */
function defaultDataDirectory(): string {
  const here = join(process.cwd(), 'muster-data');
  return process.getuid?.() === 0 && !canBeEnteredByOthers(process.cwd()) ? '/var/lib/muster' : here;
}
