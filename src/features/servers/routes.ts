import { route } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { nameCaller } from '../../platform/tokens/caller.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import { parseTags } from '../tags.ts';
import type { Servers } from './servers.ts';
import * as wire from './wire.ts';

const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;
const SERVERS = '/games/:game_id/environments/:environment_id/servers';

export function serverRoutes(servers: Servers, watch: Watch) {
  const scopeOf = ({ game_id, environment_id }: { game_id: string; environment_id: string }) => ({
    game_id,
    namespace_id: environment_id,
  });
  return [
    route(
      'GET',
      SERVERS,
      {
        summary: 'Lists the servers of an environment, the newest first.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        query: wire.ListServersQuery,
        response: wire.ServersAnswer,
        errors: NOT_FOUND,
      },
      async ({ params, query }) => {
        const { include_destroyed = false, cursor } = query;
        const filter = { tags: parseTags(query.tags_json), include_destroyed, cursor };
        return { servers: (await servers.list(scopeOf(params), filter)).map(wire.toServer) };
      },
    ),
    route(
      'POST',
      SERVERS,
      {
        summary: 'Creates a server of a build. It has started when started_at is there.',
        allow: ['identity', 'cloud', 'service'],
        access: 'write',
        body: wire.CreateServerBody,
        response: wire.ServerAnswer,
        errors: [
          ...NOT_FOUND,
          'BUILDS_BUILD_NOT_COMPLETE',
          'BUILDS_BUILD_NOT_FOUND',
          'CLUSTER_DATACENTER_NOT_FOUND',
          'SERVERS_MUST_SPECIFY_ROUTING_TYPE',
          'SERVERS_SERVER_FAILED_TO_CREATE',
          'SERVERS_UNSUPPORTED_HOST_PROTOCOL',
        ],
      },
      async ({ params, body }) => ({ server: wire.toServer(await servers.create(scopeOf(params), body)) }),
    ),
    route(
      'GET',
      `${SERVERS}/:server_id`,
      {
        summary: 'A server.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        response: wire.ServerAnswer,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params }) => ({ server: wire.toServer(await servers.get(scopeOf(params), params.server_id)) }),
    ),
    route(
      'DELETE',
      `${SERVERS}/:server_id`,
      {
        summary: 'Ends a server: SIGTERM, and SIGKILL when its kill_timeout is over.',
        allow: ['identity', 'cloud', 'service'],
        access: 'write',
        query: wire.DestroyServerQuery,
        response: Empty,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params, query }) => {
        await servers.destroy(scopeOf(params), params.server_id, query.override_kill_timeout);
        return {};
      },
    ),
    route(
      'GET',
      `${SERVERS}/:server_id/logs`,
      {
        summary: 'What a server wrote: the last lines, or those after an index.',
        allow: ['identity', 'cloud'],
        access: 'read',
        query: wire.LogsQuery,
        response: wire.LogsAnswer,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, params, query, signal }) => {
        const { server_id } = await servers.get(scopeOf(params), params.server_id);
        const name = { server_id, stream: query.stream };
        const waiting = { watch_index: query.watch_index, signal, waiter: nameCaller(caller) };
        const { view, watch: seen } = await watch.follow(servers.log, name, waiting);
        return { ...view, watch: seen };
      },
    ),
  ];
}
