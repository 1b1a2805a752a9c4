import { READY_SOURCE } from '../support/lobbies/room.ts';
import { waitFor } from '../support/wait.ts';
import type { ContractClient } from './contract-client.ts';
import type { Created } from './wire-contract-cloud.ts';

/** Calls the operations on builds, servers and their logs, as developers' machines do. */
export async function callServers({ call }: ContractClient, created: Created): Promise<void> {
  const path = { game_id: created.game.game_id, environment_id: created.namespace.namespace_id };
  const { token } = await call('games_environments_tokens_createServiceToken', { path, token: created.cloud_token });
  const content = Buffer.from(`console.log('hello');${READY_SOURCE}`);
  const image = {
    image_tag: 'server:1',
    image_file: { path: 'server.ts', content_length: content.length },
    kind: 'javascript',
  };
  const prepared = await call('servers_builds_prepare', {
    path,
    token: created.cloud_token,
    body: { name: 'Server', ...image },
  });
  await fetch(prepared.image_presigned_request.url, { method: 'PUT', body: content });
  const build = { ...path, build_id: prepared.build };
  await call('servers_builds_complete', { path: build, token: created.cloud_token });
  await call('servers_builds_patchTags', {
    path: build,
    token: created.cloud_token,
    body: { tags: { current: 'true' }, exclusive_tags: ['current'] },
  });
  await call('servers_builds_get', { path: build, token });
  await call('servers_builds_list', { path, query: { tags_json: '{"current":"true"}' }, token });
  const cloud = { path: created.game, token: created.cloud_token };
  await call('cloud_games_builds_createGameBuild', { ...cloud, body: { display_name: 'Server', ...image } });
  await call('cloud_games_builds_listGameBuilds', cloud);

  const { datacenters } = await call('servers_datacenters_list', { path, token });
  const { server } = await call('servers_create', {
    path,
    token,
    body: {
      datacenter: datacenters[0].id,
      tags: { name: 'mine' },
      runtime: { build: prepared.build, environment: { MOOD: 'calm' } },
      network: { ports: { game: { protocol: 'udp', internal_port: 7_777 } } },
      resources: { cpu: 1_000, memory: 1_024 },
    },
  });
  const one = { ...path, server_id: server.id };
  await waitFor(
    async () => (await call('servers_get', { path: one, token })).server.started_at !== undefined,
    'the server to have started',
  );
  await call('servers_list', { path, query: { include_destroyed: 'true' }, token });
  await waitFor(async () => {
    const logs = { path: one, query: { stream: 'std_out' }, token: created.cloud_token };
    return (await call('servers_logs_get', logs)).lines.length > 0;
  }, 'the server to print a line');
  await call('servers_destroy', { path: one, query: { override_kill_timeout: '0' }, token });
}
