import { listOf, mapOf, record } from './exact-shapes.ts';

// The tables of the specification's chapter "Resources and their fields", in its order and words.

export const SERVER = record({
  id: 'string',
  environment: 'string',
  datacenter: 'string',
  created_at: 'integer',
  'started_at?': 'integer',
  'destroyed_at?': 'integer',
  tags: 'object',
  lifecycle: record({ 'kill_timeout?': 'integer' }),
  network: record({
    'mode?': 'string',
    ports: mapOf(
      record({
        protocol: 'string',
        'internal_port?': 'integer',
        'public_hostname?': 'string',
        'public_port?': 'integer',
        routing: record({ 'game_guard?': 'object', 'host?': 'object' }),
      }),
    ),
  }),
  resources: record({ cpu: 'integer', memory: 'integer' }),
  runtime: record({ build: 'string', 'arguments?': listOf('string'), 'environment?': mapOf('string') }),
});

export const BUILD = record({
  id: 'string',
  name: 'string',
  created_at: 'RFC3339',
  content_length: 'u64',
  tags: mapOf('string'),
});

export const BUILD_SUMMARY = record({
  build_id: 'string',
  upload_id: 'string',
  display_name: 'string',
  create_ts: 'RFC3339',
  content_length: 'u64',
  complete: 'boolean',
  tags: mapOf('string'),
});

const REGION_SUMMARY = record(
  {
    region_id: 'string',
    region_name_id: 'string',
    provider: 'string',
    provider_display_name: 'string',
    region_display_name: 'string',
  },
  'CloudRegionSummary',
);

const NAMESPACE_SUMMARY = record({
  namespace_id: 'string',
  name_id: 'string',
  display_name: 'string',
  version_id: 'string',
  create_ts: 'RFC3339',
});

const VERSION_SUMMARY = record({ version_id: 'string', display_name: 'string', create_ts: 'RFC3339' });

export const GAME = record({
  game_id: 'string',
  name_id: 'string',
  display_name: 'string',
  developer_group_id: 'string',
  create_ts: 'RFC3339',
  total_player_count: 'u32',
  'logo_url?': 'string',
  'banner_url?': 'string',
  available_regions: listOf(REGION_SUMMARY),
  namespaces: listOf(NAMESPACE_SUMMARY),
  versions: listOf(VERSION_SUMMARY),
});

const EXTERNAL = record({ profile: 'string' });

export const GAME_SUMMARY = record({
  game_id: 'string',
  name_id: 'string',
  display_name: 'string',
  url: 'string',
  total_player_count: 'u32',
  'logo_url?': 'string',
  'banner_url?': 'string',
  developer: record({
    group_id: 'string',
    display_name: 'string',
    external: EXTERNAL,
    'avatar_url?': 'string',
    'is_developer?': 'boolean',
  }),
});

export const GROUP_SUMMARY = record(
  {
    group_id: 'string',
    display_name: 'string',
    bio: 'string',
    'avatar_url?': 'string',
    external: EXTERNAL,
    is_current_identity_member: 'boolean',
    member_count: 'integer',
    owner_identity_id: 'string',
    publicity: 'string',
  },
  'GroupGroupSummary',
);

export const WATCH = record({ index: 'string' });

const PLAYER = record({ token: 'string' });

const PORTS = mapOf(
  record({
    hostname: 'string',
    'host?': 'string or null',
    'port?': 'integer or null',
    is_tls: 'boolean',
    'port_range?': record({ min: 'integer', max: 'integer' }),
  }),
);

/** The answer of find, join and create. */
export const JOIN_RESPONSE = record({
  lobby: record({
    lobby_id: 'string',
    // An addition (decision 0017).
    'code?': 'string',
    region: record({ region_id: 'string', display_name: 'string' }),
    // A copy of the ports below, where old clients of Rivet read them.
    ports: PORTS,
    player: PLAYER,
  }),
  player: PLAYER,
  ports: PORTS,
});

/** Ports in the request for a development token. */
export const PORT_CONFIGURATION = record({
  protocol: 'string',
  'port?': 'integer',
  'port_range?': record({ min: 'u32', max: 'u32' }),
});

export const CDN_SITE_SUMMARY = record({
  site_id: 'string',
  upload_id: 'string',
  display_name: 'string',
  create_ts: 'RFC3339',
  content_length: 'u64',
  complete: 'boolean',
});

export const PRESIGNED_REQUEST = record({
  url: 'string',
  path: 'string',
  byte_offset: 'integer',
  content_length: 'integer',
});

export const DATACENTER = record({ id: 'string', name: 'string', slug: 'string' });

export const BOOTSTRAP = record(
  {
    access: 'string',
    captcha: record({ 'turnstile?': record({ site_key: 'string' }) }),
    cluster: 'string',
    'domains?': record({ cdn: 'string', job: 'string', main: 'string', 'opengb?': 'string' }),
    // The specification says that there is a boolean beside `access_token`; Rivet calls it `email`.
    login_methods: record({ access_token: 'boolean', email: 'boolean' }),
    origins: record({ hub: 'string' }),
  },
  'CloudBootstrapResponse',
);

export const BILLING_USAGE = record({
  games: listOf(record({ game_id: 'string', regions: listOf(record({ region_id: 'string', uptime: 'integer' })) })),
});

export const VALIDATION_ERROR = record({ path: listOf('string') });

export const ERROR = record(
  { code: 'string', message: 'string', documentation: 'string', 'metadata?': 'object' },
  // Old clients need a ray_id.
  'ErrorBody',
);
