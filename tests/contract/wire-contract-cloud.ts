import type { TestService } from '../support/service.ts';
import type { ContractClient } from './contract-client.ts';

/** What the earlier calls have created. */
export interface Created {
  identity: string;
  cloud_token: string;
  game: { game_id: string };
  namespace: { game_id: string; namespace_id: string };
  group_id: string;
  name_id: string;
  public_token: string;
}

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
export const PICTURE = { path: 'me.png', mime: 'image/png', content_length: PNG.length };

/** Uploads a picture to its presigned address. */
export async function sendPicture({ presigned_request }: { presigned_request: { url: string } }): Promise<void> {
  await fetch(presigned_request.url, { method: 'PUT', body: PNG });
}

/** Calls the operations on games, namespaces, versions, tokens, pictures and sites, as developers' tools do. */
export async function callCloud({ call }: ContractClient, { config }: TestService, identity: string): Promise<Created> {
  const token = identity;
  await call('cloud_bootstrap');
  await call('cloud_tiers_getRegionTiers');
  await call('cloud_groups_validate', { token, body: { display_name: 'Team' } });
  const { group_id } = await call('group_create', { token, body: { display_name: 'Team' } });
  const names = { display_name: 'Game', developer_group_id: group_id };
  await call('cloud_games_validateGame', { token, body: names });
  const game = { game_id: (await call('cloud_games_createGame', { token, body: names })).game_id };
  const { token: cloud_token } = await call('cloud_games_tokens_createCloudToken', { path: game, token });
  await call('cloud_auth_inspect', { token: cloud_token });
  await call('cloud_games_getGames', { token });

  for (const kind of ['Banner', 'Logo']) {
    const prepared = await call(`cloud_games_game${kind}UploadPrepare`, { path: game, token, body: PICTURE });
    await sendPicture(prepared);
    const path = { ...game, upload_id: prepared.upload_id };
    await call(`cloud_games_game${kind}UploadComplete`, { path, token });
  }
  const avatar = await call('cloud_games_avatars_prepareCustomAvatarUpload', { path: game, token, body: PICTURE });
  await sendPicture(avatar);
  const avatar_path = { ...game, upload_id: avatar.upload_id };
  await call('cloud_games_avatars_completeCustomAvatarUpload', { path: avatar_path, token });
  await call('cloud_games_avatars_listGameCustomAvatars', { path: game, token });

  const { game: seen } = await call('cloud_games_getGameById', { path: game, token });
  await call('portal_games_getGameProfile', { path: { game_name_id: seen.name_id }, token });
  await call('cloud_games_versions_reserveVersionName', { path: game, token });
  const version = { display_name: '1.0', config: {} };
  await call('cloud_games_versions_validateGameVersion', { path: game, token, body: version });
  const { version_id } = await call('cloud_games_versions_createGameVersion', { path: game, token, body: version });
  await call('cloud_games_versions_getGameVersionById', { path: { ...game, version_id }, token });

  const beta = { display_name: 'Beta', name_id: 'beta', version_id };
  await call('cloud_games_namespaces_validateGameNamespace', { path: game, token, body: beta });
  const created = await call('cloud_games_namespaces_createGameNamespace', { path: game, token, body: beta });
  const namespace = { ...game, namespace_id: created.namespace_id };
  await callSettings({ call }, namespace, token);
  const update = { path: namespace, token, body: { version_id } };
  await call('cloud_games_namespaces_updateGameNamespaceVersion', update);
  await call('cloud_games_namespaces_GetGameNamespaceVersionHistoryList', { path: namespace, token });
  await call('cloud_games_namespaces_getGameNamespaceById', { path: namespace, token });
  const { token: public_token } = await call('cloud_games_namespaces_createGameNamespaceTokenPublic', {
    path: namespace,
    token,
  });

  const file = { path: 'index.html', content_length: 5 };
  const site = await call('cloud_games_cdn_createGameCdnSite', {
    path: game,
    token,
    body: { display_name: 'Site', files: [file] },
  });
  await fetch(site.presigned_requests[0].url, { method: 'PUT', body: 'hello' });
  await call('cloud_uploads_completeUpload', { path: { upload_id: site.upload_id }, token });
  await call('cloud_games_cdn_listGameCdnSites', { path: game, token });

  const link = await call('cloud_devices_links_prepare');
  const { device_link_token } = link;
  await call('cloud_devices_links_complete', { token, body: { device_link_token, ...game } });
  await call('cloud_devices_links_get', { query: { device_link_token } });
  const { headers } = await fetch(`${config.public_url}/cloud/bootstrap`);
  await call('cloud_logs_getRayPerfLogs', { path: { ray_id: headers.get('rvt-ray-id') ?? '' }, token });
  return { identity, cloud_token, game, namespace, group_id, name_id: seen.name_id, public_token };
}

async function callSettings(
  { call }: Pick<ContractClient, 'call'>,
  path: { game_id: string; namespace_id: string },
  token: string,
): Promise<void> {
  const prefix = 'cloud_games_namespaces_';
  const limits = { lobby_count_max: 16, max_players: 8 };
  await call(`${prefix}validateGameNamespaceMatchmakerConfig`, { path, token, body: limits });
  await call(`${prefix}updateGameNamespaceMatchmakerConfig`, { path, token, body: limits });
  const password = await Bun.password.hash('secret', { algorithm: 'bcrypt', cost: 4 });
  await call(`${prefix}updateNamespaceCdnAuthUser`, { path, token, body: { user: 'ann', password } });
  await call(`${prefix}setNamespaceCdnAuthType`, { path, token, body: { auth_type: 'basic' } });
  await call(`${prefix}toggleNamespaceDomainPublicAuth`, { path, token, body: { enabled: true } });
  await call(`${prefix}addNamespaceDomain`, { path, token, body: { domain: 'play.example.org' } });
  await call(`${prefix}getGameNamespaceById`, { path, token });
  await call(`${prefix}removeNamespaceCdnAuthUser`, { path: { ...path, user: 'ann' }, token });
  await call(`${prefix}removeNamespaceDomain`, { path: { ...path, domain: 'play.example.org' }, token });
  const ports = { game: { protocol: 'udp', port: 7_777 } };
  await call(`${prefix}createGameNamespaceTokenDevelopment`, { path, token, body: { hostname: 'localhost', ports } });
  const lobby_ports = [{ label: 'game', target_port: 7_777, proxy_protocol: 'udp' }];
  const development = { hostname: 'localhost', lobby_ports };
  await call(`${prefix}validateGameNamespaceTokenDevelopment`, { path, token, body: development });
}
