import type { Api } from './api.ts';
import { PLAYERS_PER_CLIENT } from './game-limits.ts';

/** A game that was created through the API. */
export interface TestGame {
  game_id: string;
  group_id: string;
  /** The namespace prod, and the environment of the same id. */
  namespace_id: string;
  staging_id: string;
  cloud_token: string;
  /** Of the namespace prod. */
  public_token: string;
  service_token: string;
}

/** Makes a group, a game and its tokens. */
export async function makeGame(api: Api, administrator_token: string): Promise<TestGame> {
  const token = administrator_token;
  const { group_id } = await api.ok('POST', '/group/groups', { token, body: { display_name: 'Test team' } });
  const body = { display_name: 'Test game', developer_group_id: group_id };
  const { game_id } = await api.ok('POST', '/cloud/games', { token, body });
  const { game } = await api.ok('GET', `/cloud/games/${game_id}`, { token });
  const idOf = (name_id: string): string =>
    game.namespaces.find((namespace: { name_id: string }) => namespace.name_id === name_id).namespace_id;
  const namespace_id = idOf('prod');
  for (const { namespace_id: id } of game.namespaces) await setLimits(api, { game_id, namespace_id: id, token }, {});
  const made = async (path: string): Promise<string> => (await api.ok('POST', path, { token, body: {} })).token;
  return {
    game_id,
    group_id,
    namespace_id,
    staging_id: idOf('staging'),
    cloud_token: await made(`/cloud/games/${game_id}/tokens/cloud`),
    public_token: await made(`/cloud/games/${game_id}/namespaces/${namespace_id}/tokens/public`),
    service_token: await made(`/games/${game_id}/environments/${namespace_id}/tokens/service`),
  };
}

/** Sets the maximum numbers of lobbies, and of players of a client, of a namespace. */
export async function setLimits(
  api: Api,
  { game_id, namespace_id, token }: { game_id: string; namespace_id: string; token: string },
  { lobby_count_max = 128, max_players = PLAYERS_PER_CLIENT }: { lobby_count_max?: number; max_players?: number },
): Promise<void> {
  const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/mm-config`;
  await api.ok('POST', path, { token, body: { lobby_count_max, max_players } });
}

/** Uploads a script as a build of the game's prod environment, and returns its id. */
export async function uploadScript(api: Api, game: TestGame, source: string): Promise<string> {
  return await uploadBuild(api, game, { kind: 'javascript', path: 'server.ts', content: Buffer.from(source) });
}

interface BuildFile {
  kind?: string;
  image_tag?: string;
  path: string;
  content: Uint8Array;
  command?: string[];
  isolation?: string;
  multipart_upload?: boolean;
}

/** Uploads a build of any kind (prepare, PUT each part, complete), and returns its id. */
export async function uploadBuild(
  api: Api,
  { game_id, namespace_id, cloud_token }: TestGame,
  file: BuildFile,
): Promise<string> {
  const { kind, image_tag, path, content, command, isolation, multipart_upload } = file;
  const builds = `/games/${game_id}/environments/${namespace_id}/builds`;
  const prepared = await api.ok('POST', `${builds}/prepare`, {
    token: cloud_token,
    body: {
      name: 'Test build',
      ...(kind ? { kind } : {}),
      ...(image_tag ? { image_tag } : {}),
      image_file: { path, content_length: content.length },
      ...(command ? { command } : {}),
      ...(isolation ? { isolation } : {}),
      ...(multipart_upload ? { multipart_upload } : {}),
    },
  });
  const requests = prepared.image_presigned_requests ?? [prepared.image_presigned_request];
  for (const { url, byte_offset, content_length } of requests) {
    const response = await fetch(url, {
      method: 'PUT',
      body: content.slice(byte_offset, byte_offset + content_length),
    });
    if (!response.ok) throw new Error(`PUT ${path}: ${await response.text()}`);
  }
  await api.ok('POST', `${builds}/${prepared.build}/complete`, { token: cloud_token });
  return prepared.build;
}

/** Deploys a new version with this matchmaker to the namespace prod. */
export async function deploy(api: Api, game: TestGame, matchmaker: unknown): Promise<string> {
  const { game_id, namespace_id, cloud_token: token } = game;
  const body = { display_name: `Version ${crypto.randomUUID()}`, config: { matchmaker } };
  const { version_id } = await api.ok('POST', `/cloud/games/${game_id}/versions`, { token, body });
  await api.ok('PUT', `/cloud/games/${game_id}/namespaces/${namespace_id}/version`, { token, body: { version_id } });
  return version_id;
}

/** Returns the servers of the game's prod, newest first; ended ones only if requested. */
export async function listServers(
  { api }: { api: Api },
  { game_id, namespace_id, cloud_token: token }: TestGame,
  { include_destroyed = false } = {},
) {
  const path = `/games/${game_id}/environments/${namespace_id}/servers?include_destroyed=${include_destroyed}`;
  const { servers } = await api.ok('GET', path, { token });
  return servers;
}
