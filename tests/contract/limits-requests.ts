import { deploy } from '../support/game.ts';
import { machineIdOf } from '../support/machines/machines.ts';
import { makeGuest } from '../support/people.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant, type Tenant } from '../support/tenant.ts';

/** The parts of a request. */
export interface Sent {
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  token?: string;
  headers?: Record<string, string>;
}

/**
 * Good requests by operation, for example "POST /group/groups". What one leaves out comes from the operation's shape.
 */
export interface GoodRequests {
  tenant: Tenant;
  administrator_token: string;
  /** A version's configuration of its lobbies' servers. */
  docker: object;
  /** Makes the request of one case; making it changes nothing. */
  of: Record<string, () => Sent>;
  /** Prepares what the operation needs each time to succeed, and returns what its request adds. */
  onceOf: Record<string, () => Promise<Sent>>;
}

const PASSWORD = `$2b$04$${'u'.repeat(53)}`;
const PICTURE = { path: 'me.png', mime: 'image/png', content_length: 100 };
const ARCHIVE = { image_file: { path: 'server.tar', content_length: 10 }, kind: 'archive', command: ['x'] };
const HEADERS = { custom_headers: { headers: [{ name: 'x-game', value: 'room' }] } };

/** Makes a tenant with one of everything and a request to join its group, and returns its good requests. */
export async function makeGoodRequests(muster: TestService): Promise<GoodRequests> {
  const { api, administrator_token, config } = muster;
  const tenant = await makeTenant(muster);
  const { ids, tokens, game, member } = tenant;
  const { device_link: device_link_token = '', player: player_token } = tokens;
  const { game_id = '', build_id, site_id, group_id, lobby_id } = ids;
  const owner = { token: administrator_token };
  const docker = {
    image_id: build_id,
    args: ['x'],
    env: { MODE: 'calm' },
    ports: { game: { port: 80, protocol: 'http' } },
  };
  const verified = { enabled: true, verification_config: { url: 'https://verification.invalid/' } };
  const verified_mode = { actions: { find: verified, join: verified, create: verified } };
  const default_mode = { taggable: true, allow_dynamic_max_players: true, actions: { create: { enabled: true } } };
  const matchmaker = { game_modes: { default: default_mode, verified: verified_mode }, max_players: 256, docker };
  const version_id = await deploy(api, game, matchmaker);
  const { game: seen } = await api.ok('GET', `/cloud/games/${game_id}`, owner);
  const { identity } = await api.ok('GET', '/identity/identities/self/profile', owner);
  await api.ok('POST', `/group/groups/${group_id}/profile`, { ...owner, body: { publicity: 'open' } });
  const guest = await makeGuest(api, game);
  await api.ok('POST', `/group/groups/${group_id}/join-request`, { token: guest.token, body: {} });
  const servers = `/games/${game_id}/environments/${ids.environment_id}/servers`;
  const machine_id = await makeStoppedMachine(muster);
  const { datacenters } = await api.ok('GET', servers.replace('servers', 'datacenters'), { token: game.cloud_token });

  const server = () => ({
    body: {
      datacenter: datacenters[0].id,
      tags: { name: 'mine' },
      runtime: { build: build_id, arguments: ['x'], environment: { MODE: 'calm' } },
      network: { ports: { game: { protocol: 'udp', routing: { host: {} } } } },
      resources: { cpu: 100, memory: 100 },
    },
  });
  const region = { [config.datacenter.slug]: { tier: 'basic-1d1', idle_lobbies: { min: 0, max: 1 } } };
  const route = { glob: '*', priority: 1, middlewares: [{ kind: HEADERS }] };
  const version = () => ({
    body: {
      display_name: `V ${crypto.randomUUID()}`,
      config: { matchmaker: { ...matchmaker, regions: region }, cdn: { site_id, routes: [route] } },
    },
  });
  const names = () => ({ display_name: 'X', name_id: crypto.randomUUID().slice(0, 8) });
  const player = async () => {
    const joined = await api.ok('POST', '/matchmaker/lobbies/join', { token: game.public_token, body: { lobby_id } });
    return { body: { player_token: joined.player.token } };
  };
  const known_player = () => ({ body: { player_token } });
  const game_path = '/cloud/games/{game_id}';
  const namespace_path = `${game_path}/namespaces/{namespace_id}`;
  const environment_path = '/games/{game_id}/environments/{environment_id}';
  const listed_port = { label: 'game', target_port: 7_777, proxy_protocol: 'udp' };
  const stream = () => ({ query: { stream: 'std_out' } });
  const handles = () => ({ query: { identity_ids: member.identity_id } });
  const picture = () => ({ body: PICTURE });
  const place = { latitude: '50.11', longitude: '8.68' };
  const limits = () => ({ body: { lobby_count_max: 8, max_players: 512 } });

  const of: GoodRequests['of'] = {
    'POST /matchmaker/lobbies/find': () => ({ body: { game_modes: ['default'] } }),
    'POST /matchmaker/lobbies/create': () => ({ body: { game_mode: 'default' } }),
    'GET /matchmaker/lobbies/list': () => ({ query: place }),
    'GET /matchmaker/regions': () => ({ query: place }),
    'POST /matchmaker/lobbies/join': () => ({ body: { lobby_id } }),
    'PUT /matchmaker/lobbies/closed': () => ({ body: { is_closed: false } }),
    'POST /matchmaker/players/connected': known_player,
    'POST /matchmaker/players/disconnected': known_player,
    [`GET ${game_path}/matchmaker/lobbies/{lobby_id}/logs`]: stream,
    [`POST ${game_path}/matchmaker/lobbies/export-history`]: () => ({ body: { query_start: 0, query_end: 1 } }),
    [`POST ${environment_path}/servers`]: server,
    [`GET ${environment_path}/servers/{server_id}/logs`]: stream,
    [`GET ${environment_path}/servers/{server_id}/log-search`]: () => ({
      query: { stream: 'std_out', search_text: 'x' },
    }),
    [`POST ${namespace_path}/matchmaker/verification/try`]: () => ({ body: { kind: 'find', game_mode: 'verified' } }),
    [`POST ${environment_path}/builds/prepare`]: () => ({ body: { name: 'Build', ...ARCHIVE } }),
    [`POST ${game_path}/builds`]: () => ({ body: { display_name: 'Build', ...ARCHIVE } }),
    [`PATCH ${environment_path}/builds/{build_id}/tags`]: () => ({ body: { tags: { a: 'b' }, exclusive_tags: ['a'] } }),
    [`POST ${game_path}/cdn/sites`]: () => ({
      body: { display_name: 'Site', files: [{ path: 'index.html', content_length: 1 }] },
    }),
    'POST /cloud/games': () => ({ body: { display_name: 'Game', developer_group_id: group_id } }),
    'POST /cloud/games/validate': () => ({ body: { display_name: 'Game' } }),
    'GET /portal/games/{game_name_id}/profile': () => ({ path: { game_name_id: seen.name_id } }),
    [`POST ${game_path}/logo-upload/prepare`]: picture,
    [`POST ${game_path}/banner-upload/prepare`]: picture,
    [`POST ${game_path}/avatar-upload/prepare`]: picture,
    [`POST ${game_path}/prepare`]: picture,
    'POST /identity/identities/avatar-upload/prepare': picture,
    'POST /group/groups/avatar-upload/prepare': picture,
    [`POST ${game_path}/namespaces`]: () => ({ body: { ...names(), version_id } }),
    [`POST ${game_path}/namespaces/validate`]: () => ({ body: names() }),
    [`PUT ${namespace_path}/version`]: () => ({ body: { version_id } }),
    [`POST ${namespace_path}/tokens/development`]: () => ({
      body: { hostname: 'localhost', ports: { game: { protocol: 'udp', port: 7_777 } } },
    }),
    [`POST ${namespace_path}/tokens/development/validate`]: () => ({
      body: { hostname: 'localhost', lobby_ports: [listed_port] },
    }),
    [`POST ${namespace_path}/mm-config/validate`]: limits,
    [`POST ${namespace_path}/mm-config`]: limits,
    [`PUT ${namespace_path}/cdn-auth`]: () => ({ body: { auth_type: 'none' } }),
    [`POST ${namespace_path}/auth-user`]: () => ({ body: { user: 'ann', password: PASSWORD } }),
    [`POST ${namespace_path}/domains`]: () => ({ body: { domain: 'play.example.org' } }),
    [`POST ${game_path}/versions`]: version,
    [`POST ${game_path}/versions/validate`]: version,
    'POST /group/groups/{group_id}/transfer-owner': () => ({ body: { new_owner_identity_id: identity.identity_id } }),
    'POST /group/groups/{group_id}/join-request/{identity_id}': () => ({ path: { identity_id: guest.identity_id } }),
    'PUT /cloud/machines/{machine_id}/drain': () => ({ path: { machine_id }, body: { deadline_ms: 1_000 } }),
    'POST /auth/tokens/identity': () => ({ headers: { origin: config.public_url } }),
    'POST /hub/session': () => ({ headers: { origin: config.public_url }, body: { code: 'x' } }),
    'GET /identity/identities/batch/handle': handles,
    'GET /identity/identities/batch/summary': handles,
    'GET /cloud/devices/links': () => ({ query: { device_link_token } }),
    'POST /cloud/devices/links/complete': () => ({ body: { device_link_token, game_id } }),
  };
  const onceOf: GoodRequests['onceOf'] = {
    'POST /matchmaker/players/connected': player,
    'POST /matchmaker/players/disconnected': player,
    [`DELETE ${environment_path}/servers/{server_id}`]: async () => {
      const made = await api.ok('POST', servers, { token: game.cloud_token, ...server() });
      return { path: { server_id: made.server.id } };
    },
    'POST /hub/session': async () => {
      const { url } = await api.ok('POST', '/hub/links', { ...owner, body: {} });
      return { body: { code: new URL(url).hash.replace('#login=', '') } };
    },
  };
  return { tenant, administrator_token, docker, of, onceOf };
}

/** Starts a second machine and stops it, so that nothing runs on it. Returns its id. */
async function makeStoppedMachine(muster: TestService): Promise<string> {
  await using other = await openTestService({}, { database_of: muster });
  return await machineIdOf(other.config.data_directory);
}
