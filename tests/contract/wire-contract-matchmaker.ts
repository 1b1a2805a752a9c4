import { READY_SOURCE } from '../support/lobbies/room.ts';
import { waitFor } from '../support/wait.ts';
import type { ContractClient } from './contract-client.ts';
import type { Created } from './wire-contract-cloud.ts';

/**
 * Calls the operations on a lobby from its first player to its history, as a game's client, server and developer do.
 */
export async function callMatchmaker({ call }: ContractClient, created: Created): Promise<void> {
  const token = created.public_token;
  const developer = created.cloud_token;
  await deployRoom({ call }, created);
  await call('matchmaker_regions_list', { token });
  const found = await call('matchmaker_lobbies_find', { token, body: { game_modes: ['default'] } });
  const { lobby_id } = found.lobby;
  const joined = await call('matchmaker_lobbies_join', { token, body: { lobby_id } });
  const lobby = { game_id: created.game.game_id, lobby_id };
  const server = await readToken({ call }, lobby, developer);
  await call('matchmaker_lobbies_ready', { token: server });
  await call('matchmaker_lobbies_setState', { token: server, body: { map: 'desert' } });
  await call('matchmaker_lobbies_getState', { path: { lobby_id }, token: server });
  await call('matchmaker_lobbies_setClosed', { token: server, body: { is_closed: true } });
  for (const player of [found, joined]) {
    await call('matchmaker_players_connected', { token: server, body: { player_token: player.player.token } });
  }
  await call('matchmaker_lobbies_list', { query: { include_state: 'true' }, token });
  await call('matchmaker_players_getStatistics', { token });
  await call('cloud_games_namespaces_analytics_getAnalyticsMatchmakerLive', {
    path: created.namespace,
    token: developer,
  });
  await call('matchmaker_players_disconnected', { token: server, body: { player_token: joined.player.token } });
  await call('matchmaker_lobbies_create', { token, body: { game_mode: 'default', lobby_config: { rules: 'none' } } });

  const window = { query_start: 0, query_end: Date.now() + 1_000 };
  const path = created.game;
  await call('cloud_games_matchmaker_exportMatchmakerLobbyHistory', { path, token: developer, body: window });
  const stream = { stream: 'std_out' };
  await call('cloud_games_matchmaker_exportLobbyLogs', { path: lobby, token: developer, body: stream });
  await call('cloud_games_matchmaker_deleteMatchmakerLobby', { path: lobby, token: developer });
  await call('cloud_games_namespaces_logs_listNamespaceLobbies', { path: created.namespace, token: developer });
  const past = { ...created.namespace, lobby_id };
  await call('cloud_games_namespaces_logs_getNamespaceLobby', { path: past, token: developer });
}

/** Deploys a version whose lobbies print their tokens. */
async function deployRoom({ call }: Pick<ContractClient, 'call'>, created: Created): Promise<void> {
  const path = { game_id: created.game.game_id, environment_id: created.namespace.namespace_id };
  const token = created.cloud_token;
  const content = Buffer.from(`console.log(process.env.SERVICE_TOKEN);${READY_SOURCE}`);
  const image_file = { path: 'room.ts', content_length: content.length };
  const body = { name: 'Room', image_tag: 'room:1', image_file, kind: 'javascript' };
  const { build, image_presigned_request } = await call('servers_builds_prepare', { path, token, body });
  await fetch(image_presigned_request.url, { method: 'PUT', body: content });
  await call('servers_builds_complete', { path: { ...path, build_id: build }, token });
  const docker = { image_id: build, ports: { game: { port: 80, protocol: 'http' } } };
  const game_modes = { default: { actions: { create: { enabled: true } } } };
  const config = { matchmaker: { game_modes, max_players: 8, docker } };
  const version = { path: created.game, token, body: { display_name: '2.0', config } };
  const { version_id } = await call('cloud_games_versions_createGameVersion', version);
  await call('cloud_games_versions_getGameVersionById', { path: { ...created.game, version_id }, token });
  const update = { path: created.namespace, token, body: { version_id } };
  await call('cloud_games_namespaces_updateGameNamespaceVersion', update);
}

async function readToken(
  { call }: Pick<ContractClient, 'call'>,
  path: { game_id: string; lobby_id: string },
  token: string,
): Promise<string> {
  return await waitFor(async () => {
    const query = { stream: 'std_out' };
    const { lines } = await call('cloud_games_matchmaker_getLobbyLogs', { path, query, token });
    return lines.length > 0 ? atob(lines[0]) : undefined;
  }, "the lobby's token in its log");
}
