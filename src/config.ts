import { availableParallelism, homedir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { defaultDataDirectory } from './default-data-directory.ts';
import { assertDomains } from './domains.ts';
import { StartError } from './platform/errors.ts';
import { gatewayRequestsMaxOf, transfersMaxOf, withMoreFetches } from './platform/fetches.ts';
import { assertProxySecret, readTrustedProxies } from './platform/http/addresses.ts';
import { readStoreSettings, type StoreSettings } from './platform/limits/store-settings.ts';
import { isAnyAddress, type Network } from './platform/networks.ts';
import { readS3Settings, type S3Settings } from './platform/objects/s3-settings.ts';
import { hideFromOthers, overwriteVariables } from './platform/system/memory-hiding.ts';
import type { PortProtocol } from './platform/tokens/caller.ts';
import { MIB } from './platform/units.ts';
import {
  parseCoordinates,
  parseNameServers,
  parseOutboundAllow,
  parsePortRange,
  readCaptchaKeys,
  type SharedCaptchaKeys,
  splitList,
} from './setting-texts.ts';
import { Settings } from './settings.ts';
import { type ThrowawayResources, throwawaySettings } from './throwaway-settings.ts';
import { assertDifferent, readTlsSettings, type TlsSettings } from './tls-settings.ts';

/** Default share of a machine's servers for the games of one developer group. */
const GROUP_SHARE_DEFAULT = 0.75;
/** Maximum number of files and folders of a game server. */
const SERVER_FILES_MAX = 100_000;
/** Settings whose values never appear in messages. An address may contain a password. */
const SECRETS = [
  'DATABASE_URL',
  'REDIS_URL',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
  'MUSTER_PROXY_SECRET',
  'UPSTASH_REDIS_REST_URL',
  'UPSTASH_REDIS_REST_TOKEN',
  'MUSTER_HCAPTCHA_SECRET_KEY',
  'MUSTER_TURNSTILE_SECRET_KEY',
];

/** Variables of other programs that hold secrets. Muster does not use them, and game servers must not find them here. */
const OTHER_SECRETS = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'S3_SESSION_TOKEN'];

/**
 * The configuration of the service: the settings, completed with defaults and checked against each other. Most settings
 * that only one feature reads are in a group with its name.
 */
export interface Config {
  host: string;
  port: number;
  /** Absolute. */
  data_directory: string;
  disk_reserve_bytes: number;
  /** Without a slash at the end. */
  public_url: string;
  /** The address at which processes on this machine reach the service. */
  local_url: string;
  tls: Omit<TlsSettings, 'public_url'>;
  database_url: string | undefined;
  database_pool: number;
  /** Maximum number of concurrent downloads and uploads. */
  transfers_max: number;
  /** Undefined to store objects in the data directory. */
  s3: S3Settings | undefined;
  trusted_proxies: Network[];
  /** Undefined if the address of a trusted proxy suffices. */
  proxy_secret: string | undefined;
  limits: {
    is_on: boolean;
    scale: number;
    /** Undefined if each process counts for itself. */
    store: StoreSettings | undefined;
  };
  log: Settings['MUSTER_LOG'];
  demo: boolean;
  /** Whether a start prints the administrator's token and a link that logs in to the hub. */
  prints_secrets: boolean;
  datacenter: { slug: string; name: string; coordinates: { latitude: number; longitude: number } | undefined };
  server_host: string;
  gateway: {
    /** Maximum number of concurrent requests to game servers. */
    requests_max: number;
    /** How game servers learn the addresses of relayed clients; undefined if they do not. */
    proxy_protocol: 'v1' | 'v2' | undefined;
    /** How long a stop waits for players at the gateway. */
    drain_ms: number;
    bytes_a_minute: { of_server: number; of_address: number };
  };
  isolation: Settings['MUSTER_ISOLATION'];
  containers: { is_on: boolean; has_read_only_root: boolean; engine_url: string | undefined };
  /** Undefined if this machine runs game servers itself. */
  kubernetes: KubernetesConfig | undefined;
  sites_domain: string;
  /** Further names by which the API is reached. */
  own_hosts: string[];
  servers_domain: string;
  domains: {
    domains_allow: string[];
    /** Empty to use those of the machine. */
    name_servers: string[];
  };
  machines: { lost_after_ms: number; rest_ms: number };
  servers: {
    server_ports: { min: number; max: number };
    servers_max: number;
    servers_per_group_max: number;
    /** What servers may need together; undefined for no limit. */
    resources_max: { cpu: number; memory: number } | undefined;
    /** Protocols whose ports players reach by a relay. */
    relayed: ReadonlySet<PortProtocol>;
    /** Undefined for no limit. */
    disk_max: { bytes: number; files: number } | undefined;
  };
  lobbies: {
    ready_timeout_ms: number;
    seat_timeout_ms: number;
    player_timeout_ms: number;
    receipts_per_second_max: number;
  };
  request_timeout_ms: number;
  verification: { verification_timeout_ms: number };
  outbound_allow: string[];
  ip_database_file: string | undefined;
  /** 0 keeps the history forever. */
  history_days: number;
  audit_days: number;
  builds: {
    /** 0 keeps unpacked builds until the disk is short of space. */
    unpacked_days: number;
    /** The file of the image on which archives run in containers. */
    container_base_file: string | undefined;
  };
  /** Keys for captchas of versions that have no keys of their own. */
  shared_captcha_keys: SharedCaptchaKeys;
  captcha: {
    hcaptcha_url: string;
    turnstile_url: string;
    captcha_timeout_ms: number;
    captcha_is_open_when_down: boolean;
  };
  /** Absolute. */
  address_classes_file: string | undefined;
  picture_quota: { day_bytes_max: number; kept_bytes_max: number };
  /** Undefined to derive it from the limit of file descriptors. */
  connections_per_address_max: number | undefined;
  watch: { watch_hold_ms: number; watchers_max: number; watchers_per_caller_max: number };
  sockets: { sockets_max: number; sockets_per_caller_max: number };
}

/** The cluster that runs game servers. */
interface KubernetesConfig {
  /** The path of a kubeconfig, or `in-cluster`. */
  kubeconfig: string;
  /** Undefined for the namespace of the credentials. */
  namespace: string | undefined;
  own_image: string;
  pods_host: string;
  port: number;
  /** The name by which nodes pull images; undefined if they cannot. */
  registry_host: string | undefined;
  /** Where to listen for pods; undefined for all addresses. */
  listen_address: string | undefined;
  has_agones: boolean;
}

/** Reads the settings. Throws StartError for an invalid value, and for a MUSTER_ name that is not a setting. */
export function readConfig(environment: Record<string, string | undefined> = process.env): Config {
  const settings = parseSettings(environment);
  const url_host = settings.MUSTER_HOST.includes(':') ? `[${settings.MUSTER_HOST}]` : settings.MUSTER_HOST;
  const local_url = `http://${isAnyAddress(settings.MUSTER_HOST) ? '127.0.0.1' : url_host}:${settings.MUSTER_PORT}`;
  if (!URL.canParse(local_url)) {
    throw new StartError(
      `MUSTER_HOST is "${settings.MUSTER_HOST}": expected an address like 127.0.0.1 or ::1, or a name.`,
    );
  }
  if (settings.MUSTER_WATCH_HOLD_MS >= settings.MUSTER_REQUEST_TIMEOUT_MS) {
    throw new StartError(
      `MUSTER_WATCH_HOLD_MS (${settings.MUSTER_WATCH_HOLD_MS}) must be below MUSTER_REQUEST_TIMEOUT_MS (${settings.MUSTER_REQUEST_TIMEOUT_MS}): otherwise long polls time out before they answer.`,
    );
  }
  const trusted_proxies = readTrustedProxies(settings.MUSTER_TRUSTED_PROXIES);
  if (settings.MUSTER_PROXY_SECRET === undefined) assertProxySecret(trusted_proxies);
  const s3 = readS3Settings(settings, environment);
  const tls = readTlsSettings(settings);
  const public_url = (settings.MUSTER_PUBLIC_URL ?? tls.public_url ?? local_url).replace(/\/$/, '');
  if (!URL.canParse(public_url)) {
    throw new StartError(`MUSTER_PUBLIC_URL is "${public_url}": expected an address like https://play.example.com.`);
  }
  const [sites_domain, servers_domain] = [settings.MUSTER_SITES_DOMAIN, settings.MUSTER_SERVERS_DOMAIN];
  const own_hosts = splitList(settings.MUSTER_OWN_HOSTS);
  assertDomains({ servers_domain, sites_domain, public_url, own_hosts });
  return {
    host: settings.MUSTER_HOST,
    port: settings.MUSTER_PORT,
    data_directory: resolve(settings.MUSTER_DATA ?? defaultDataDirectory(process.cwd())),
    disk_reserve_bytes: settings.MUSTER_DISK_RESERVE_MB * MIB,
    public_url,
    local_url,
    tls,
    database_url: settings.DATABASE_URL,
    database_pool: settings.MUSTER_DATABASE_POOL,
    transfers_max: transfersMaxOf(environment, { is_s3: s3 !== undefined }),
    s3,
    trusted_proxies,
    proxy_secret: settings.MUSTER_PROXY_SECRET,
    limits: {
      is_on: settings.MUSTER_LIMITS === 'on',
      scale: settings.MUSTER_LIMITS_SCALE,
      store: readStoreSettings(settings),
    },
    log: settings.MUSTER_LOG,
    demo: settings.MUSTER_DEMO === 'on',
    prints_secrets: settings.MUSTER_PRINT_SECRETS === 'on',
    datacenter: {
      slug: settings.MUSTER_DATACENTER,
      name: settings.MUSTER_DATACENTER_NAME,
      coordinates: parseCoordinates(settings.MUSTER_DATACENTER_COORDINATES),
    },
    server_host: settings.MUSTER_SERVER_HOST ?? new URL(public_url).hostname.replace(/^\[|\]$/g, ''),
    gateway: {
      requests_max: gatewayRequestsMaxOf(environment),
      proxy_protocol: proxyProtocolOf(settings),
      drain_ms: settings.MUSTER_GATEWAY_DRAIN_MS,
      bytes_a_minute: {
        of_server: settings.MUSTER_GATEWAY_SERVER_MINUTE_MIB * MIB,
        of_address: settings.MUSTER_GATEWAY_ADDRESS_MINUTE_MIB * MIB,
      },
    },
    isolation: settings.MUSTER_ISOLATION,
    containers: {
      is_on: settings.MUSTER_CONTAINERS === 'on',
      has_read_only_root: settings.MUSTER_CONTAINERS_READ_ONLY === 'on',
      engine_url: settings.MUSTER_CONTAINER_ENGINE,
    },
    kubernetes: readKubernetes(settings, tls),
    sites_domain,
    servers_domain,
    own_hosts,
    domains: {
      domains_allow: splitList(settings.MUSTER_DOMAINS_ALLOW),
      name_servers: parseNameServers(settings.MUSTER_NAME_SERVERS),
    },
    machines: { lost_after_ms: settings.MUSTER_MACHINE_LOST_MS, rest_ms: settings.MUSTER_MACHINE_REST_MS },
    servers: {
      server_ports: parsePortRange(settings.MUSTER_SERVER_PORTS, {
        MUSTER_PORT: settings.MUSTER_PORT,
        MUSTER_HTTPS_PORT: tls.https_port,
        MUSTER_HTTP_PORT: tls.http_port,
      }),
      servers_max: settings.MUSTER_SERVERS_MAX,
      servers_per_group_max:
        settings.MUSTER_SERVERS_PER_GROUP_MAX ?? Math.ceil(settings.MUSTER_SERVERS_MAX * GROUP_SHARE_DEFAULT),
      resources_max: readResourcesMax(settings),
      relayed: relayedProtocols(settings, tls),
      disk_max:
        settings.MUSTER_SERVER_DISK_MB === 0
          ? undefined
          : { bytes: settings.MUSTER_SERVER_DISK_MB * MIB, files: SERVER_FILES_MAX },
    },
    lobbies: {
      ready_timeout_ms: settings.MUSTER_READY_TIMEOUT_MS,
      seat_timeout_ms: settings.MUSTER_SEAT_TIMEOUT_MS,
      player_timeout_ms: settings.MUSTER_PLAYER_TIMEOUT_MS,
      receipts_per_second_max: settings.MUSTER_RECEIPTS_PER_SECOND_MAX,
    },
    request_timeout_ms: settings.MUSTER_REQUEST_TIMEOUT_MS,
    verification: { verification_timeout_ms: settings.MUSTER_VERIFICATION_TIMEOUT_MS },
    outbound_allow: parseOutboundAllow(settings.MUSTER_OUTBOUND_ALLOW),
    ip_database_file: settings.MUSTER_IP_DATABASE,
    history_days: settings.MUSTER_HISTORY_DAYS,
    audit_days: settings.MUSTER_AUDIT_DAYS,
    builds: {
      unpacked_days: settings.MUSTER_UNPACKED_DAYS,
      container_base_file: settings.MUSTER_CONTAINER_BASE,
    },
    shared_captcha_keys: {
      ...readCaptchaKeys('hcaptcha', {
        site_key: settings.MUSTER_HCAPTCHA_SITE_KEY,
        secret_key: settings.MUSTER_HCAPTCHA_SECRET_KEY,
      }),
      ...readCaptchaKeys('turnstile', {
        site_key: settings.MUSTER_TURNSTILE_SITE_KEY,
        secret_key: settings.MUSTER_TURNSTILE_SECRET_KEY,
      }),
    },
    captcha: {
      hcaptcha_url: settings.MUSTER_HCAPTCHA_URL,
      turnstile_url: settings.MUSTER_TURNSTILE_URL,
      captcha_timeout_ms: settings.MUSTER_CAPTCHA_TIMEOUT_MS,
      captcha_is_open_when_down: settings.MUSTER_CAPTCHA_WHEN_DOWN === 'open',
    },
    address_classes_file: settings.MUSTER_ADDRESS_CLASSES && resolve(settings.MUSTER_ADDRESS_CLASSES),
    picture_quota: {
      day_bytes_max: settings.MUSTER_PICTURES_DAY_MIB * MIB,
      kept_bytes_max: settings.MUSTER_PICTURES_MIB * MIB,
    },
    connections_per_address_max: settings.MUSTER_CONNECTIONS_PER_ADDRESS_MAX,
    watch: {
      watch_hold_ms: settings.MUSTER_WATCH_HOLD_MS,
      watchers_max: settings.MUSTER_WATCHERS_MAX,
      watchers_per_caller_max: settings.MUSTER_WATCHERS_PER_CALLER_MAX,
    },
    sockets: {
      sockets_max: settings.MUSTER_SOCKETS_MAX,
      sockets_per_caller_max: settings.MUSTER_SOCKETS_PER_CALLER_MAX,
    },
  };
}

/** Settings of the command line, and those that `muster test` gives to tests. A service ignores them. */
const CLIENT_SETTINGS = new Set(['MUSTER_URL', 'MUSTER_TOKEN', 'MUSTER_GAME', 'MUSTER_NAMESPACE', 'MUSTER_TEST_CLOCK']);

function parseSettings(environment: Record<string, string | undefined>): Settings {
  for (const name of Object.keys(environment)) {
    if (name.startsWith('MUSTER_') && !(name in Settings.properties) && !CLIENT_SETTINGS.has(name)) {
      const advice = `"muster --help" lists them all.${adviceOnServiceLink(name, environment[name])}`;
      throw new StartError(`${name} is not a setting; ${advice}`);
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
    const shown = SECRETS.includes(name) ? '' : ` is "${hideUser(String(given[name]))}", which`;
    const advice = `${shape.description}${adviceOnServiceLink(name, environment[name])}`;
    throw new StartError(`${name}${shown} cannot be used (${expectation(shape)}). ${advice}`);
  }
  return Value.Decode(Settings, completed);
}

/** Variables that Kubernetes sets in pods for each Service: MUSTER_SERVICE_HOST, MUSTER_PORT_8080_TCP and others. */
const SERVICE_LINK_NAME = /_SERVICE_(HOST|PORT)|_PORT_[0-9]+_/;
const SERVICE_LINK_ADDRESS = /^(tcp|udp|sctp):/;

/** Returns what to do about a setting that Kubernetes set; empty for others. */
function adviceOnServiceLink(name: string, value = ''): string {
  const is_address = name.endsWith('_PORT') && SERVICE_LINK_ADDRESS.test(value);
  if (!is_address && !SERVICE_LINK_NAME.test(name)) return '';
  return ' Kubernetes sets it for a Service whose name begins with "muster": set enableServiceLinks: false in the pod.';
}

/** Returns an environment that allows more concurrent fetches; undefined if the current one sets the limit already. */
export const environmentForMoreFetches = () => withMoreFetches(process.env);

/**
 * Makes fetch ignore the HTTP proxy of the environment, which Bun would use even for loopback: the service reaches game
 * servers directly.
 */
export function ignoreHttpProxy(): void {
  delete process.env.http_proxy;
  delete process.env.HTTP_PROXY;
}

/** Returns the variable with the order of a container of a pod. Throws StartError outside of pods. */
export function readPodOrder(variable: string): string {
  const order = process.env[variable];
  if (order === undefined)
    throw new StartError('This command is for pods, which Muster makes: run "muster serve" instead.');
  return order;
}

/** Reads the settings of a service for one run of tests, with resources of its own. Throws StartError for an invalid value. */
export const readThrowawayConfig = (own: ThrowawayResources) => readConfig(throwawaySettings(process.env, own));

/** Returns folders for files that can be made again, the best first (XDG Base Directory Specification). */
export function cacheDirectories(): string[] {
  const of_user = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'muster');
  return process.getuid?.() === 0 ? [of_user, '/var/cache/muster'] : [of_user];
}

/**
 * Reads the configuration of this process, then hides it: the secrets are removed from the environment, and other processes
 * can no longer read the memory of this one.
 */
export function takeConfig(): Config {
  const config = readConfig();
  const names = [...SECRETS, ...OTHER_SECRETS];
  for (const name of names) delete process.env[name];
  overwriteVariables(names);
  hideFromOthers();
  return config;
}

/** Removes user and password from an address. */
function hideUser(text: string): string {
  return text.replace(/\/\/.*@/, '//…@');
}

function expectation(shape: TSchema): string {
  if (shape.type === 'integer') return `expected a whole number from ${shape.minimum} to ${shape.maximum}`;
  if (shape.maxLength !== undefined) return `expected at most ${shape.maxLength} characters`;
  if (Array.isArray(shape.anyOf)) return `expected one of ${shape.anyOf.map((one) => one.const).join(', ')}`;
  return `expected ${shape.expected}`;
}

const proxyProtocolOf = ({ MUSTER_RELAY_PROXY_PROTOCOL: version }: Settings) =>
  version === 'off' ? undefined : version;

/** Returns what servers of this machine may need together: processors in thousandths, memory in MiB. */
function readResourcesMax(settings: Settings): Config['servers']['resources_max'] {
  const { MUSTER_RESOURCES_PERCENT: percent, MUSTER_KUBERNETES } = settings;
  // A cluster's scheduler knows what its nodes have.
  if (percent === undefined || MUSTER_KUBERNETES !== undefined) return undefined;
  const times = percent / 100;
  const memory_bytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return { cpu: availableParallelism() * 1_000 * times, memory: (memory_bytes / MIB) * times };
}

/** Throws StartError for a cluster that could not be used. */
function readKubernetes(settings: Settings, { https_port, http_port }: TlsSettings): KubernetesConfig | undefined {
  const {
    MUSTER_KUBERNETES: kubeconfig,
    MUSTER_KUBERNETES_IMAGE: own_image,
    MUSTER_KUBERNETES_HOST: pods_host,
  } = settings;
  if (kubeconfig === undefined) return undefined;
  if (own_image === undefined || pods_host === undefined) {
    const missing = own_image === undefined ? 'MUSTER_KUBERNETES_IMAGE' : 'MUSTER_KUBERNETES_HOST';
    throw new StartError(`MUSTER_KUBERNETES needs ${missing}. ${Settings.properties[missing].description}`);
  }
  if (/^(127[.]|::1$|localhost$)/.test(settings.MUSTER_HOST)) {
    throw new StartError(
      `MUSTER_KUBERNETES needs an API that pods reach, but MUSTER_HOST is ${settings.MUSTER_HOST}: set it to 0.0.0.0.`,
    );
  }
  if (settings.MUSTER_RELAYS === 'all') {
    throw new StartError('MUSTER_RELAYS is "all", but servers in Kubernetes have no relays: remove one of the two.');
  }
  const { MUSTER_PORT, MUSTER_KUBERNETES_PORT } = settings;
  const public_ports = { MUSTER_PORT, MUSTER_HTTPS_PORT: https_port, MUSTER_HTTP_PORT: http_port };
  assertDifferent({ ...public_ports, MUSTER_KUBERNETES_PORT });
  return {
    kubeconfig,
    own_image,
    pods_host,
    namespace: settings.MUSTER_KUBERNETES_NAMESPACE,
    port: MUSTER_KUBERNETES_PORT,
    registry_host: settings.MUSTER_KUBERNETES_REGISTRY,
    listen_address: /^(0[.]0[.]0[.]0|::)$/.test(settings.MUSTER_HOST) ? undefined : settings.MUSTER_HOST,
    has_agones: settings.MUSTER_KUBERNETES_AGONES === 'on',
  };
}

function relayedProtocols(
  { MUSTER_RELAYS, MUSTER_KUBERNETES }: Settings,
  { https_port }: TlsSettings,
): ReadonlySet<PortProtocol> {
  if (MUSTER_KUBERNETES !== undefined) return new Set();
  return new Set<PortProtocol>([
    ...(https_port === undefined ? [] : ['tcp_tls' as const]),
    ...(MUSTER_RELAYS === 'all' ? (['tcp', 'udp'] as const) : []),
  ]);
}
