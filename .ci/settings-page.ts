import { Settings } from '../src/settings.ts';

const LINE_LENGTH_MAX = 120;

/** Settings that belong together, with what an operator should know about all of them. */
interface Topic {
  title: string;
  text: string;
  settings: (keyof Settings)[];
}

interface Shape {
  description?: string;
  default?: string | number;
  minimum?: number;
  maximum?: number;
  anyOf?: { const: string }[];
}

/** The page of all settings. Throws if a setting has no topic, or two. */
export function writeSettings(): string {
  const named = TOPICS.flatMap(({ settings }) => settings);
  const all = Object.keys(Settings.properties);
  const wrong = all.filter((name) => named.filter((one) => one === name).length !== 1);
  if (wrong.length > 0) throw new Error(`In .ci/settings-page.ts, give one topic to each of ${wrong.join(', ')}.`);
  return `${[INTRODUCTION, ...TOPICS.map(writeTopic)].join('\n\n')}\n`;
}

function writeTopic({ title, text, settings }: Topic): string {
  return `## ${title}\n\n${text}\n\n${settings.map(writeSetting).join('\n')}`;
}

/** The item of a setting: its name, its default, the values that it can have, and its description. */
function writeSetting(name: keyof Settings): string {
  const { description = '', default: fallback, ...values }: Shape = Settings.properties[name];
  const facts = [...(fallback === undefined ? [] : [`\`${fallback}\``]), ...describeValues(values)];
  const heading = `\`${name}\`${facts.length > 0 ? ` (${facts.join('; ')})` : ''}`;
  const text = description.replaceAll('*', '\\*').replaceAll(/\b[A-Z0-9]+(_[A-Z0-9]+)+\b/g, '`$&`');
  return wrapItem(`- ${heading}: ${text}`);
}

function describeValues({ minimum, maximum, anyOf }: Shape): string[] {
  if (anyOf) return [anyOf.map((choice) => `\`${choice.const}\``).join(', ')];
  return minimum === undefined || maximum === undefined ? [] : [`\`${minimum}\` to \`${maximum}\``];
}

function wrapItem(item: string): string {
  const lines = [''];
  for (const word of item.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + 1 + word.length > LINE_LENGTH_MAX) lines.push(`  ${word}`);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join('\n');
}

const INTRODUCTION = `# Settings

Generated from \`src/settings.ts\` by \`bun .ci/documents.ts\`.

Settings come from the environment; \`muster --help\` prints them, too. In parentheses are the default, if there is one,
and the values that a setting can have. An unknown \`MUSTER_\` name stops the start, so that you notice a misspelt
one. A service ignores the names of the command line (\`MUSTER_URL\`, \`MUSTER_TOKEN\`, \`MUSTER_GAME\`,
\`MUSTER_NAMESPACE\`): its own address is \`MUSTER_PUBLIC_URL\`. Settings whose names end in \`_MB\` or \`_MIB\` count MiB,
which are 1,048,576 bytes, and so does the \`memory\` of servers. In these pages kB, MB and GB are powers of 1,000.`;

const TOPICS: Topic[] = [
  {
    title: 'Addresses and regions',
    text: `\`MUSTER_PUBLIC_URL\` has only scheme, host and port, and must be exactly what browsers see: uploads and links use it,
and pages of other origins may not call the cloud paths. The default is \`http://127.0.0.1:8080\`, so without
\`MUSTER_PUBLIC_URL\` or \`MUSTER_SERVER_HOST\` players on other machines get addresses of their own machines. The
[ports](install.md#ports) that Muster uses have a table.

Choose the name of the datacenter before you create the first game: versions refer to it, and a datacenter stays in the
list once it was there. With coordinates, players who send their location play in the nearest datacenter. Set the same
on all machines of a datacenter; the machine that started last wins.`,
    settings: [
      'MUSTER_HOST',
      'MUSTER_PORT',
      'MUSTER_PUBLIC_URL',
      'MUSTER_OWN_HOSTS',
      'MUSTER_DATACENTER',
      'MUSTER_DATACENTER_NAME',
      'MUSTER_DATACENTER_COORDINATES',
    ],
  },
  {
    title: 'Data and history',
    text: `See [the data directory](install.md#the-data-directory), [another PostgreSQL](storage-and-backups.md#another-postgresql)
and [disk use](storage-and-backups.md#disk-use-and-retention).`,
    settings: [
      'MUSTER_DATA',
      'MUSTER_DISK_RESERVE_MB',
      'DATABASE_URL',
      'MUSTER_DATABASE_POOL',
      'MUSTER_HISTORY_DAYS',
      'MUSTER_AUDIT_DAYS',
      'MUSTER_UNPACKED_DAYS',
      'MUSTER_PICTURES_DAY_MIB',
      'MUSTER_PICTURES_MIB',
    ],
  },
  {
    title: 'Object storage',
    text: 'See [object storage](storage-and-backups.md#object-storage).',
    settings: [
      'S3_ENDPOINT',
      'S3_BUCKET',
      'S3_ACCESS_KEY_ID',
      'S3_SECRET_ACCESS_KEY',
      'S3_REGION',
      'S3_PREFIX',
      'S3_ADDRESSING',
    ],
  },
  {
    title: 'HTTPS and proxies',
    text: 'See [TLS and domains](tls-and-domains.md).',
    settings: [
      'MUSTER_TLS_CERTIFICATE',
      'MUSTER_TLS_KEY',
      'MUSTER_ACME_HOSTS',
      'MUSTER_ACME_DIRECTORY',
      'MUSTER_ACME_EMAIL',
      'MUSTER_ACME_CA',
      'MUSTER_TLS_LOCAL',
      'MUSTER_HTTPS_PORT',
      'MUSTER_HTTP_PORT',
      'MUSTER_TRUSTED_PROXIES',
      'MUSTER_PROXY_SECRET',
    ],
  },
  {
    title: 'Sites',
    text: 'See [sites](tls-and-domains.md#sites) and their [domains](tls-and-domains.md#custom-domains).',
    settings: ['MUSTER_SITES_DOMAIN', 'MUSTER_DOMAINS_ALLOW', 'MUSTER_NAME_SERVERS'],
  },
  {
    title: 'Addresses of game servers',
    text: 'See [addresses of game servers](game-server-addresses.md).',
    settings: [
      'MUSTER_SERVER_HOST',
      'MUSTER_SERVER_PORTS',
      'MUSTER_SERVERS_DOMAIN',
      'MUSTER_RELAYS',
      'MUSTER_RELAY_PROXY_PROTOCOL',
      'MUSTER_GATEWAY_ADDRESS_MINUTE_MIB',
      'MUSTER_GATEWAY_SERVER_MINUTE_MIB',
      'MUSTER_GATEWAY_DRAIN_MS',
    ],
  },
  {
    title: 'Machines and their servers',
    text: `See [which machine starts a server](scaling.md#which-machine-starts-a-server) and
[lost machines](scaling.md#lost-machines).`,
    settings: [
      'MUSTER_SERVERS_MAX',
      'MUSTER_SERVERS_PER_GROUP_MAX',
      'MUSTER_RESOURCES_PERCENT',
      'MUSTER_MACHINE_LOST_MS',
      'MUSTER_MACHINE_REST_MS',
    ],
  },
  {
    title: 'Isolation and containers',
    text: 'See [isolation](isolation.md) and [containers](containers.md).',
    settings: [
      'MUSTER_ISOLATION',
      'MUSTER_SERVER_DISK_MB',
      'MUSTER_CONTAINERS',
      'MUSTER_CONTAINER_ENGINE',
      'MUSTER_CONTAINER_BASE',
      'MUSTER_CONTAINERS_READ_ONLY',
    ],
  },
  {
    title: 'Kubernetes',
    text: 'See [game servers in Kubernetes](kubernetes.md#settings).',
    settings: [
      'MUSTER_KUBERNETES',
      'MUSTER_KUBERNETES_IMAGE',
      'MUSTER_KUBERNETES_HOST',
      'MUSTER_KUBERNETES_PORT',
      'MUSTER_KUBERNETES_REGISTRY',
      'MUSTER_KUBERNETES_NAMESPACE',
      'MUSTER_KUBERNETES_AGONES',
    ],
  },
  {
    title: 'Seats and requests',
    text: 'See [all limits](limits.md#all-limits).',
    settings: [
      'MUSTER_READY_TIMEOUT_MS',
      'MUSTER_SEAT_TIMEOUT_MS',
      'MUSTER_PLAYER_TIMEOUT_MS',
      'MUSTER_REQUEST_TIMEOUT_MS',
      'MUSTER_RECEIPTS_PER_SECOND_MAX',
    ],
  },
  {
    title: 'Rate limits and connections',
    text: `See [rate limits](limits.md#rate-limits), [connections](limits.md#connections) and
[players of one address](limits.md#players-of-one-address).`,
    settings: [
      'MUSTER_LIMITS',
      'MUSTER_LIMITS_SCALE',
      'REDIS_URL',
      'UPSTASH_REDIS_REST_URL',
      'UPSTASH_REDIS_REST_TOKEN',
      'MUSTER_ADDRESS_CLASSES',
      'MUSTER_CONNECTIONS_PER_ADDRESS_MAX',
      'MUSTER_WATCH_HOLD_MS',
      'MUSTER_WATCHERS_MAX',
      'MUSTER_WATCHERS_PER_CALLER_MAX',
      'MUSTER_SOCKETS_MAX',
      'MUSTER_SOCKETS_PER_CALLER_MAX',
    ],
  },
  {
    title: 'Verification and captchas',
    text: `See [verification](verification.md#for-the-operator) and [captchas](captcha.md#for-the-operator).`,
    settings: [
      'MUSTER_OUTBOUND_ALLOW',
      'MUSTER_VERIFICATION_TIMEOUT_MS',
      'MUSTER_IP_DATABASE',
      'MUSTER_HCAPTCHA_SITE_KEY',
      'MUSTER_HCAPTCHA_SECRET_KEY',
      'MUSTER_HCAPTCHA_URL',
      'MUSTER_TURNSTILE_SITE_KEY',
      'MUSTER_TURNSTILE_SECRET_KEY',
      'MUSTER_TURNSTILE_URL',
      'MUSTER_CAPTCHA_TIMEOUT_MS',
      'MUSTER_CAPTCHA_WHEN_DOWN',
    ],
  },
  {
    title: 'Start and log',
    text: "See [the administrator's token](access.md#the-administrators-token) and [log events](monitoring.md#log-events).",
    settings: ['MUSTER_PRINT_SECRETS', 'MUSTER_LOG', 'MUSTER_DEMO'],
  },
];
