import { deploy, makeGame, type TestGame, uploadScript } from './game.ts';
import { READY_SOURCE } from './lobbies/room.ts';
import { makeGuest, type Person } from './people.ts';
import type { TestService } from './service.ts';
import { uploadSite } from './site.ts';
import { waitFor } from './wait.ts';

/** A tenant with one of everything, and a token of each kind. */
export interface Tenant {
  game: TestGame;
  /** Ids by their names in paths and bodies. */
  ids: Record<string, string>;
  /** Tokens by kind. */
  tokens: Record<string, string>;
  /** A plain member of its group. */
  member: Person;
}

/** Makes a tenant: a game with a build, a version, a site, an upload, a server, a lobby with a player, and a member. */
export async function makeTenant({ api, administrator_token }: TestService): Promise<Tenant> {
  const game = await makeGame(api, administrator_token);
  const { game_id, namespace_id, cloud_token: token } = game;
  const build_id = await uploadScript(api, game, `console.log(process.env.SERVICE_TOKEN);${READY_SOURCE}`);
  const docker = { image_id: build_id, ports: { game: { port: 80, protocol: 'http' } } };
  const version_id = await deploy(api, game, { game_modes: { default: {} }, docker });
  const site_id = await uploadSite(api, game, { 'index.html': 'hello' });
  const body = { display_name: 'Unfinished', files: [{ path: 'a', content_length: 1 }] };
  const { upload_id } = await api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body });
  const found = await api.ok('POST', '/matchmaker/lobbies/find', {
    token: game.public_token,
    body: { game_modes: ['default'] },
  });
  const { lobby_id } = found.lobby;
  const servers = `/games/${game_id}/environments/${namespace_id}/servers`;
  const [server] = (await api.ok('GET', servers, { token })).servers;
  const member = await makeGuest(api, game);
  const invites = `/group/groups/${game.group_id}/invites`;
  const { code } = await api.ok('POST', invites, { token: administrator_token, body: {} });
  await api.ok('POST', `/group/invites/${code}/consume`, { token: member.token });
  const development = await api.ok('POST', `/cloud/games/${game_id}/namespaces/${namespace_id}/tokens/development`, {
    token,
    body: { hostname: 'localhost', ports: {} },
  });
  const mock = await api.ok('POST', '/matchmaker/lobbies/find', {
    token: development.token,
    body: { game_modes: ['default'] },
  });
  const shares = `/cloud/games/${game_id}/namespaces/${namespace_id}/shares`;
  const share = await api.ok('POST', shares, { token, body: {} });
  const link = await api.ok('POST', '/cloud/devices/links');
  const logs = `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}/logs?stream=std_out`;
  const details = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/lobbies/${lobby_id}`;
  const { players } = (await api.ok('GET', details, { token })).lobby;
  const lobby_token = await waitFor(async () => {
    const { lines } = await api.ok('GET', logs, { token });
    return lines.length > 0 ? atob(lines[0]) : undefined;
  }, 'the lobby to say its token');
  return {
    game,
    member,
    ids: {
      game_id,
      namespace_id,
      environment_id: namespace_id,
      version_id,
      build_id,
      image_id: build_id,
      site_id,
      upload_id,
      server_id: server.id,
      cursor: server.id,
      lobby_id,
      group_id: game.group_id,
      share_id: share.share_id,
      identity_id: member.identity_id,
      player_id: players[0].player_id,
      player_token: found.player.token,
    },
    tokens: {
      identity: member.token,
      cloud: token,
      service: game.service_token,
      public: game.public_token,
      development: development.token,
      lobby: lobby_token,
      player: found.player.token,
      development_player: mock.player.token,
      device_link: link.device_link_token,
      share: share.token,
    },
  };
}
