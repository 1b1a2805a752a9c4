import { type Static, Type } from '@sinclair/typebox';
import { STORE_SHAPES } from './platform/limits/store-settings.ts';
import { PORT_MAX } from './platform/networks.ts';
import { S3_SHAPES } from './platform/objects/s3-settings.ts';
import { DAY_MS } from './platform/units.ts';

const HOST_NAME = '[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?';
const PUBLIC_HOST_NAME = '([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?[.])+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const ALLOWED_DOMAIN = `([*]|([*][.])?${HOST_NAME})(=[0-9A-Fa-f-]{36})?`;
const WEEK_MS = 7 * DAY_MS;

/** Every setting of the service, under its environment variable. `--help` prints this list. */
export const Settings = Type.Object({
  MUSTER_HOST: Type.String({
    default: '127.0.0.1',
    pattern: '^[A-Za-z0-9.:-]+$',
    expected: 'an address like 127.0.0.1 or ::1, or a name',
    description: 'Address to listen on. 0.0.0.0 to be reachable from other machines.',
  }),
  MUSTER_PORT: Type.Integer({ default: 8080, minimum: 1, maximum: PORT_MAX, description: 'Port to listen on.' }),
  MUSTER_DATA: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Directory for all files of the service. Default: ./muster-data; for root /var/lib/muster if other users cannot enter the current directory.',
    }),
  ),
  MUSTER_DISK_RESERVE_MB: Type.Integer({
    default: 512,
    minimum: 0,
    maximum: 1_048_576,
    description:
      "MiB to keep free for the database on the data directory's disk. With less, uploads and builds are refused and server logs dropped.",
  }),
  MUSTER_PUBLIC_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@]+/?$',
      expected: 'an address like https://play.example.com, without a path',
      description: 'Address that clients use, if not http://HOST:PORT (for example behind a proxy).',
    }),
  ),
  MUSTER_TLS_CERTIFICATE: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Files with certificates in PEM, each with its chain, separated by commas. Read again when they change. Muster then serves https.',
    }),
  ),
  MUSTER_TLS_KEY: Type.Optional(
    Type.String({ minLength: 1, description: 'Files with the private keys of MUSTER_TLS_CERTIFICATE, in its order.' }),
  ),
  MUSTER_ACME_HOSTS: Type.Optional(
    Type.String({
      pattern: `^${PUBLIC_HOST_NAME}(, ?${PUBLIC_HOST_NAME})*$`,
      expected: 'public host names like play.example.com, separated by commas',
      description:
        "Host names to get certificates for from an ACME authority (Let's Encrypt), separated by commas. You accept its terms of service.",
    }),
  ),
  MUSTER_ACME_DIRECTORY: Type.String({
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    pattern: '^https://[^/?#@]+/[^?#@]*$',
    expected: 'an address like https://ca.example.com/directory',
    description: 'Address of the ACME authority.',
  }),
  MUSTER_ACME_EMAIL: Type.Optional(
    Type.String({
      pattern: '^[^@ ]+@[^@ ]+$',
      expected: 'an address like admin@example.com',
      description: 'E-mail address for the ACME authority. Only used when Muster creates its account there.',
    }),
  ),
  MUSTER_ACME_CA: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'File with the CA certificate for connections to MUSTER_ACME_DIRECTORY, if the system does not trust it.',
    }),
  ),
  MUSTER_TLS_LOCAL: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'off',
    description:
      'Whether https is served with a certificate for localhost, for development, by an authority that this machine creates: on or off.',
  }),
  MUSTER_HTTPS_PORT: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PORT_MAX,
      description:
        'Port for https. Default: 443 if there is a certificate (MUSTER_TLS_CERTIFICATE, MUSTER_ACME_HOSTS or MUSTER_TLS_LOCAL).',
    }),
  ),
  MUSTER_HTTP_PORT: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PORT_MAX,
      description:
        'Port that redirects to https, answers for game servers without TLS, and where the ACME authority verifies that you control the hosts. Default: 80 with MUSTER_ACME_HOSTS, or if MUSTER_HTTPS_PORT is 443 and MUSTER_PORT is not 80; otherwise none.',
    }),
  ),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      expected: 'an address that begins with postgres:// or postgresql://',
      description: 'PostgreSQL 15 or later to use instead of the embedded one: postgres://user:password@host/database.',
    }),
  ),
  ...S3_SHAPES,
  MUSTER_TRUSTED_PROXIES: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f.:/, ]+$',
      expected: 'addresses and networks, separated by commas',
      description: 'Proxies whose X-Forwarded-For is trusted: addresses and networks, like 127.0.0.1,10.0.0.0/8.',
    }),
  ),
  MUSTER_PROXY_SECRET: Type.Optional(
    Type.String({
      pattern: '^[!-~]{16,256}$',
      expected: '16 to 256 visible ASCII characters, without blanks',
      description:
        'Secret that trusted proxies send in the header Muster-Proxy-Secret. Required for a proxy on this machine, because game servers share its address.',
    }),
  ),
  MUSTER_LIMITS: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description: 'Whether requests are rate limited: on or off.',
  }),
  MUSTER_LIMITS_SCALE: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Multiplies all rate limits. Raise it if many players share one address.',
  }),
  ...STORE_SHAPES,
  MUSTER_DATABASE_POOL: Type.Integer({
    default: 10,
    minimum: 2,
    maximum: 100,
    description:
      'Size of the pool of connections to PostgreSQL. Five more are used: for notifications, seats, connected players, lobby states and the heartbeat of this machine.',
  }),
  MUSTER_LOG: Type.Union(
    [Type.Literal('error'), Type.Literal('warn'), Type.Literal('info'), Type.Literal('debug'), Type.Literal('off')],
    { default: 'info', description: 'Log level on stderr: off, error, warn, info or debug.' },
  ),
  MUSTER_DEMO: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description: 'Whether a start creates the demo game if it is missing: on or off.',
  }),
  MUSTER_PRINT_SECRETS: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description:
      "Whether the first start prints the administrator's token, and every start a link that logs in to the hub: on or off. Set it to off if stdout is kept, as in containers.",
  }),
  MUSTER_DATACENTER: Type.String({
    default: 'local',
    pattern: '^[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?$',
    expected: 'at most 16 lower-case letters, digits and dashes, without a dash at either end',
    description: 'Name id of the datacenter (region) of this machine.',
  }),
  MUSTER_DATACENTER_NAME: Type.String({
    default: 'Local',
    minLength: 1,
    maxLength: 64,
    description: "Display name of this machine's datacenter.",
  }),
  MUSTER_DATACENTER_COORDINATES: Type.Optional(
    Type.String({
      pattern: '^-?[0-9]{1,2}([.][0-9]{1,9})?, ?-?[0-9]{1,3}([.][0-9]{1,9})?$',
      expected: 'two numbers like 50.11,8.68, with at most nine decimals each',
      description: 'Latitude and longitude of the datacenter in degrees, like 50.11,8.68.',
    }),
  ),
  MUSTER_SERVER_HOST: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9.:-]+$',
      expected: 'a host name or an address, without a scheme',
      description: 'Host name or address at which players reach game servers. Default: the host of MUSTER_PUBLIC_URL.',
    }),
  ),
  MUSTER_SITES_DOMAIN: Type.String({
    default: 'sites.localhost',
    pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
    expected: 'a domain in lower case like sites.example.com',
    description:
      'Domain of all sites: game--namespace.DOMAIN. Point *.DOMAIN at this service. It must not be the domain of the API, or one above it.',
  }),
  MUSTER_SERVERS_DOMAIN: Type.String({
    default: 'servers.localhost',
    pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
    expected: 'a domain in lower case like games.example.com',
    description:
      "Domain of game servers with ports for http or https: SERVER-PORT.DOMAIN. Point *.DOMAIN at this service. With a domain below localhost, such as the default, players get the server's own address.",
  }),
  MUSTER_OWN_HOSTS: Type.Optional(
    Type.String({
      pattern: `^${HOST_NAME}(, ?${HOST_NAME})*$`,
      expected: 'host names, separated by commas',
      description: 'Further host names of the API, separated by commas, so that no site can take them.',
    }),
  ),
  MUSTER_DOMAINS_ALLOW: Type.Optional(
    Type.String({
      pattern: `^${ALLOWED_DOMAIN}(, ?${ALLOWED_DOMAIN})*$`,
      expected: 'domains, each alone or with =NAMESPACE_ID, separated by commas',
      description:
        'Domains that sites may use without a DNS proof: *.example.com, or play.example.com=NAMESPACE_ID for one namespace; * for all.',
    }),
  ),
  MUSTER_NAME_SERVERS: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f.:,\\[\\] ]+$',
      expected: 'addresses, each with a port or without, separated by commas',
      description:
        'Name servers to ask for DNS proofs, like 192.0.2.53 or [2001:db8::53]:53. Default: those of this machine.',
    }),
  ),
  MUSTER_SERVER_PORTS: Type.String({
    default: '26000-31999',
    pattern: '^[0-9]{1,5}-[0-9]{1,5}$',
    expected: 'two ports like 26000-31999',
    description: 'Ports for game servers, first-last.',
  }),
  MUSTER_RELAYS: Type.Union([Type.Literal('tls'), Type.Literal('all')], {
    default: 'tls',
    description:
      'Which ports of game servers players reach through Muster, apart from http and https: tls (tcp_tls, if there is a certificate) or all (tcp and udp too).',
  }),
  MUSTER_RELAY_PROXY_PROTOCOL: Type.Union([Type.Literal('off'), Type.Literal('v1'), Type.Literal('v2')], {
    default: 'off',
    description:
      'Whether relayed TCP connections begin with a header of the PROXY protocol, which tells game servers the addresses of players: off, v1 or v2.',
  }),
  MUSTER_GATEWAY_ADDRESS_MINUTE_MIB: Type.Integer({
    default: 2_048,
    minimum: 1,
    maximum: 1_048_576,
    description:
      'MiB that one address and a game server may exchange in a minute through the gateway and relays. MUSTER_LIMITS_SCALE multiplies it.',
  }),
  MUSTER_GATEWAY_SERVER_MINUTE_MIB: Type.Integer({
    default: 16_384,
    minimum: 1,
    maximum: 1_048_576,
    description: 'MiB that all players and a game server may exchange in a minute through the gateway and relays.',
  }),
  MUSTER_GATEWAY_DRAIN_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 86_400_000,
    description:
      "How long a stop waits for players' WebSockets and relayed connections to end by themselves. Until then, Muster answers all requests, and /health/ready says 503.",
  }),
  MUSTER_SERVERS_MAX: Type.Integer({
    default: 500,
    minimum: 1,
    maximum: 10_000,
    description: 'Maximum number of game servers on this machine.',
  }),
  MUSTER_SERVERS_PER_GROUP_MAX: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10_000,
      description:
        'Maximum number of game servers on this machine for the games of one developer group. Default: three quarters of MUSTER_SERVERS_MAX.',
    }),
  ),
  MUSTER_RESOURCES_PERCENT: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description:
        "How much of this machine's processors and memory its game servers may need together, by their tiers. 100 is the machine's full capacity. Default: only MUSTER_SERVERS_MAX limits them. Not for MUSTER_KUBERNETES, whose cluster knows its nodes.",
    }),
  ),
  MUSTER_MACHINE_LOST_MS: Type.Integer({
    default: 30_000,
    minimum: 1_000,
    maximum: 3_600_000,
    description:
      'Time without a heartbeat of this machine after which the other machines on its database declare it lost, with its game servers.',
  }),
  MUSTER_MACHINE_REST_MS: Type.Integer({
    default: 600_000,
    minimum: 1_000,
    maximum: WEEK_MS,
    description:
      'Time after which a machine counts as lost if its Muster was stopped and its game servers run on, for example for an upgrade. A cluster is declared lost after this time without a holder, but not before MUSTER_MACHINE_LOST_MS.',
  }),
  MUSTER_SERVER_DISK_MB: Type.Integer({
    default: 4_096,
    minimum: 0,
    maximum: 16_777_216,
    description: 'MiB of disk for a game server, with at most 100,000 files. 0 lifts both limits.',
  }),
  MUSTER_ISOLATION: Type.Union([Type.Literal('on'), Type.Literal('required'), Type.Literal('off')], {
    default: 'on',
    description:
      'Isolation of game servers: on (as far as this machine can), required (refuses to start servers below full isolation) or off.',
  }),
  MUSTER_CONTAINERS: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on',
    description:
      'Whether builds of kind docker_image and oci_bundle run: on (if this machine can run containers) or off.',
  }),
  MUSTER_CONTAINER_ENGINE: Type.Optional(
    Type.String({
      pattern: '^unix:///.+$',
      expected: 'an address that begins with unix:///',
      description:
        'The socket of Docker or Podman that runs containers, like unix:///run/docker.sock. Default: Muster runs them itself.',
    }),
  ),
  MUSTER_CONTAINER_BASE: Type.Optional(
    Type.String({
      description:
        'The file of an image, as docker save writes it, on which archives with isolation container run. Default: such archives are refused.',
    }),
  ),
  MUSTER_CONTAINERS_READ_ONLY: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'off',
    description:
      'Whether containers can write only to /tmp and /dev/shm, and not to the files of their image: on or off.',
  }),
  MUSTER_KUBERNETES: Type.Optional(
    Type.String({
      pattern: '^(in-cluster|/.+)$',
      expected: 'in-cluster, or a path that begins with /',
      description:
        'The Kubernetes cluster that runs game servers: in-cluster, or the path of a kubeconfig. Default: this machine runs them.',
    }),
  ),
  MUSTER_KUBERNETES_NAMESPACE: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
      expected: 'at most 63 lower-case letters, digits and dashes, without a dash at either end',
      description: 'The namespace of the pods. Default: the namespace of the credentials.',
    }),
  ),
  MUSTER_KUBERNETES_IMAGE: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9./:@_-]{0,511}$',
      expected: 'the name of an image like registry.example.com/muster:1.2.3',
      description: "Muster's own image, of this release, in which the pods run.",
    }),
  ),
  MUSTER_KUBERNETES_HOST: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9.:-]+$',
      expected: 'a host name or an address, without a scheme',
      description:
        'Address at which pods reach this process and those that share the cluster with it: the API at MUSTER_PORT, and MUSTER_KUBERNETES_PORT.',
    }),
  ),
  MUSTER_KUBERNETES_PORT: Type.Integer({
    default: 8090,
    minimum: 1,
    maximum: PORT_MAX,
    description: 'Port at which pods fetch their builds and hand over their output.',
  }),
  MUSTER_KUBERNETES_REGISTRY: Type.Optional(
    Type.String({
      // Without a dot or a port, nodes would look for it at Docker Hub.
      pattern: '^([a-z0-9-]+(\\.[a-z0-9-]+)+(:[0-9]{1,5})?|[a-z0-9-]+:[0-9]{1,5})$',
      expected: 'a name in lower case with a dot or a port, like muster.example.com or muster:8443',
      description:
        'Host name at which nodes pull the images of builds from this service, with its port unless that is 443. Default: none, and images are refused.',
    }),
  ),
  MUSTER_KUBERNETES_AGONES: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'off',
    description: 'Whether Agones, which the cluster must have, makes the pods, a GameServer for each: on or off.',
  }),
  MUSTER_READY_TIMEOUT_MS: Type.Integer({
    default: 300_000,
    minimum: 1_000,
    maximum: WEEK_MS,
    description: 'Time for the server of a new lobby to call ready.',
  }),
  MUSTER_SEAT_TIMEOUT_MS: Type.Integer({
    default: 120_000,
    minimum: 1_000,
    maximum: WEEK_MS,
    description: 'Time for a player to connect after getting a seat.',
  }),
  MUSTER_PLAYER_TIMEOUT_MS: Type.Integer({
    default: 28_800_000,
    minimum: 1_000,
    maximum: 52 * WEEK_MS,
    description: "Time after which a player is removed even if the lobby's server did not report a disconnect.",
  }),
  MUSTER_REQUEST_TIMEOUT_MS: Type.Integer({
    default: 50_000,
    minimum: 1_000,
    maximum: 240_000,
    description: 'Time limit of a request, including the wait for a lobby.',
  }),
  MUSTER_VERIFICATION_TIMEOUT_MS: Type.Integer({
    default: 10_000,
    minimum: 100,
    maximum: 60_000,
    description: "Time for a game's own server to verify a player (external verification).",
  }),
  MUSTER_OUTBOUND_ALLOW: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description:
        'Targets of verification requests that are not on the Internet, separated by commas: 10.1.0.0/16, 10.1.2.3:8080, verify.internal:8080.',
    }),
  ),
  MUSTER_IP_DATABASE: Type.Optional(
    Type.String({
      minLength: 1,
      description: "File that locates IP addresses, in MaxMind's format (for example GeoLite2 City).",
    }),
  ),
  MUSTER_UNPACKED_DAYS: Type.Integer({
    default: 7,
    minimum: 0,
    maximum: 36_500,
    description:
      'Days that the files of a build without servers stay unpacked. 0 keeps them until the disk is short of space.',
  }),
  MUSTER_HISTORY_DAYS: Type.Integer({
    default: 30,
    minimum: 0,
    maximum: 36_500,
    description: 'Days after which ended lobbies, players and servers are removed; 0 keeps them forever.',
  }),
  MUSTER_AUDIT_DAYS: Type.Integer({
    default: 90,
    minimum: 0,
    maximum: 36_500,
    description: 'Days after which entries of the audit log are removed; 0 keeps them forever.',
  }),
  MUSTER_RECEIPTS_PER_SECOND_MAX: Type.Integer({
    default: 50,
    minimum: 0,
    maximum: 10_000,
    description:
      'Finds, joins and creates per second that get a receipt, which explains the outcome and is kept for an hour.',
  }),
  MUSTER_HCAPTCHA_SITE_KEY: Type.Optional(
    Type.String({
      maxLength: 36,
      description: 'Site key of hCaptcha for versions that use it without their own keys.',
    }),
  ),
  MUSTER_HCAPTCHA_SECRET_KEY: Type.Optional(
    Type.String({ maxLength: 42, description: 'Secret key that belongs to MUSTER_HCAPTCHA_SITE_KEY.' }),
  ),
  MUSTER_TURNSTILE_SITE_KEY: Type.Optional(
    Type.String({
      maxLength: 30,
      description:
        'Site key of Turnstile for versions that use it without their own keys; GET /cloud/bootstrap shows it.',
    }),
  ),
  MUSTER_TURNSTILE_SECRET_KEY: Type.Optional(
    Type.String({ maxLength: 40, description: 'Secret key that belongs to MUSTER_TURNSTILE_SITE_KEY.' }),
  ),
  MUSTER_HCAPTCHA_URL: Type.String({
    default: 'https://api.hcaptcha.com/siteverify',
    pattern: '^https?://[^/?#@]+/[^?#@]*$',
    expected: 'an address like https://captcha.example.com/verify',
    description: 'Address that checks the captchas of hCaptcha.',
  }),
  MUSTER_TURNSTILE_URL: Type.String({
    default: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    pattern: '^https?://[^/?#@]+/[^?#@]*$',
    expected: 'an address like https://captcha.example.com/verify',
    description: 'Address that checks the captchas of Turnstile.',
  }),
  MUSTER_CAPTCHA_TIMEOUT_MS: Type.Integer({
    default: 5_000,
    minimum: 100,
    maximum: 30_000,
    description: 'Time limit for checking a captcha, including a retry.',
  }),
  MUSTER_CAPTCHA_WHEN_DOWN: Type.Union([Type.Literal('closed'), Type.Literal('open')], {
    default: 'closed',
    description: 'Requests while the captcha provider is down: closed refuses them, open lets them pass.',
  }),
  MUSTER_ADDRESS_CLASSES: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'File that lists networks of kind vpn, proxy, tor or hosting, one per line: 192.0.2.0/24 vpn.',
    }),
  ),
  MUSTER_PICTURES_DAY_MIB: Type.Integer({
    default: 1_024,
    minimum: 1,
    maximum: 1_048_576,
    description: 'MiB of pictures that a game, the players of a namespace, or an identity may upload in a day.',
  }),
  MUSTER_PICTURES_MIB: Type.Integer({
    default: 8_192,
    minimum: 1,
    maximum: 1_048_576,
    description: 'MiB of pictures that a game, the players of a namespace, or an identity may store in total.',
  }),
  MUSTER_CONNECTIONS_PER_ADDRESS_MAX: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Maximum number of connections from one address, or from one /64 network of IPv6. Default: 2048, or half of the file descriptors (ulimit -n) if that is less.',
    }),
  ),
  MUSTER_WATCH_HOLD_MS: Type.Integer({
    default: 40_000,
    minimum: 1_000,
    // Clients give a poll up after 60 s, as many proxies do.
    maximum: 50_000,
    description: 'Time a long poll waits for a change before it answers with the current state.',
  }),
  MUSTER_WATCHERS_MAX: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Maximum number of waiting long polls and WebSocket subscriptions.',
  }),
  MUSTER_WATCHERS_PER_CALLER_MAX: Type.Integer({
    default: 128,
    minimum: 1,
    maximum: 10_000_000,
    description:
      'Maximum number of waiting long polls and subscriptions per caller; per address for tokens that players share.',
  }),
  MUSTER_SOCKETS_MAX: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Maximum number of open WebSockets.',
  }),
  MUSTER_SOCKETS_PER_CALLER_MAX: Type.Integer({
    default: 64,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Maximum number of open WebSockets of a caller; of an address while the caller is unknown.',
  }),
});

export type Settings = Static<typeof Settings>;
