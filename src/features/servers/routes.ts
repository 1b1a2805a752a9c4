import type { Static } from '@sinclair/typebox';
import { route, watched } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import { watchLog, watchRows, watchState } from '../../platform/watch/views.ts';
import type { AddressOf } from '../port-names.ts';
import { parseTags, refuseLongTags } from '../tags.ts';
import { CrashesAnswer, toCrashGroup } from './crashes/crashes-wire.ts';
import { LINES_PER_ANSWER_MAX } from './logs/logs.ts';
import { RowsAnswer, RowsQuery, toWindow } from './rows-wire.ts';
import type { Servers } from './servers.ts';
import * as wire from './wire.ts';

const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;
const SERVERS = '/games/:game_id/environments/:environment_id/servers';

/** Limits per token, those of the reference API. The back end of a game asks often. */
const LIMITS = {
  listing: averagePerMinute('servers-list', 60_000),
  creating: averagePerMinute('servers-create', 1_000),
  reading: averagePerMinute('servers-get', 60_000),
  ending: averagePerMinute('servers-delete', 10_000),
} as const;

export function serverRoutes(servers: Servers, addressOf: AddressOf) {
  const toServer = (row: Parameters<typeof wire.toServer>[0]) => wire.toServer(row, addressOf);
  const scopeOf = ({ game_id, environment_id }: { game_id: string; environment_id: string }) => ({
    game_id,
    namespace_id: environment_id,
  });
  const readingLogs = {
    allow: ['identity', 'cloud'],
    access: 'read',
    query: wire.LogsQuery,
    errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
  } as const;

  async function logOf(
    params: { game_id: string; environment_id: string; server_id: string },
    query: Static<typeof wire.LogsQuery>,
  ) {
    const log_query = wire.toLogQuery(query);
    const { server_id } = await servers.get(scopeOf(params), params.server_id);
    return { server_id, ...log_query };
  }

  return [
    watched(
      '/cloud/games/:game_id/namespaces/:namespace_id/servers',
      {
        operation: 'listServerRows',
        summary:
          'Returns a window of the servers of a namespace, with a summary. Watchers are sent the rows that change.',
        allow: ['identity', 'cloud'],
        access: 'read',
        query: RowsQuery,
        response: RowsAnswer,
        errors: NOT_FOUND,
      },
      ({ params, query }) => watchRows(servers.rows, { namespace_id: params.namespace_id, ...toWindow(query) }),
    ),
    watched(
      '/cloud/games/:game_id/namespaces/:namespace_id/crashes',
      {
        operation: 'listServerCrashes',
        summary: 'Lists how servers of a namespace crashed within the last hour, in words, and how many did.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: CrashesAnswer,
        errors: NOT_FOUND,
      },
      ({ params }) => watchState(servers.crashes, params, (crashes) => ({ crashes: crashes.map(toCrashGroup) })),
    ),
    watched(
      SERVERS,
      {
        operation: 'listServers',
        summary: 'Lists the servers of an environment, newest first.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: LIMITS.listing,
        query: wire.ListServersQuery,
        response: wire.ServersAnswer,
        errors: NOT_FOUND,
      },
      ({ params, query }) => {
        const { include_destroyed = false, cursor } = query;
        const filter = { tags: parseTags(query.tags_json), include_destroyed, cursor };
        return watchState(servers.list, { ...scopeOf(params), ...filter }, (rows) => ({
          servers: rows.map(toServer),
        }));
      },
    ),
    route(
      'POST',
      SERVERS,
      {
        operation: 'createServer',
        recorded: ['server'],
        summary: 'Creates a server that runs a build. It has started once started_at is set.',
        allow: ['identity', 'cloud', 'service'],
        access: 'write',
        limit: LIMITS.creating,
        body: wire.CreateServerBody,
        response: wire.ServerAnswer,
        errors: [
          ...NOT_FOUND,
          'BUILDS_BUILD_NOT_COMPLETE',
          'BUILDS_BUILD_NOT_FOUND',
          'CLUSTER_DATACENTER_NOT_FOUND',
          'SERVERS_MUST_SPECIFY_ROUTING_TYPE',
          'SERVERS_SERVER_FAILED_TO_CREATE',
          'SERVERS_TOO_MANY_WAITING',
          'SERVERS_UNSUPPORTED_HOST_PROTOCOL',
        ],
      },
      async ({ params, body }) => {
        refuseLongTags(body.tags);
        return { server: toServer(await servers.create(scopeOf(params), body)) };
      },
    ),
    watched(
      `${SERVERS}/:server_id`,
      {
        operation: 'getServer',
        summary: 'Returns a server.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: LIMITS.reading,
        response: wire.ServerAnswer,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
      },
      ({ params: { server_id, ...environment } }) =>
        watchState(servers.server, { ...scopeOf(environment), server_id }, (row) => ({ server: toServer(row) })),
    ),
    route(
      'DELETE',
      `${SERVERS}/:server_id`,
      {
        operation: 'destroyServer',
        summary:
          'Ends a server, or the last one of its chain of restarts: with SIGTERM, and after its kill_timeout with SIGKILL.',
        allow: ['identity', 'cloud', 'service'],
        access: 'write',
        limit: LIMITS.ending,
        query: wire.DestroyServerQuery,
        response: Empty,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params, query }) => {
        await servers.destroy(scopeOf(params), params.server_id, query.override_kill_timeout);
        return {};
      },
    ),
    watched(
      `${SERVERS}/:server_id/end`,
      {
        operation: 'getServerEnd',
        summary: 'Returns how a server ended, in words, with the last lines of its log.',
        allow: ['identity', 'cloud'],
        access: 'read',
        limit: LIMITS.reading,
        response: wire.ServerEndAnswer,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
      },
      ({ params: { server_id, ...environment } }) =>
        watchState(servers.serverEnd, { ...scopeOf(environment), server_id }, wire.toServerEnd),
    ),
    watched(
      `${SERVERS}/:server_id/usage`,
      {
        operation: 'getServerUsage',
        summary: 'Returns what a server used in each minute of the last day, or since an index, and what it may use.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: LIMITS.reading,
        response: wire.UsageAnswer,
        errors: [...NOT_FOUND, 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params }) => {
        const { server_id } = await servers.get(scopeOf(params), params.server_id);
        return watchLog(servers.usage, { server_id }, wire.toUsage);
      },
    ),
    watched(
      `${SERVERS}/:server_id/logs`,
      {
        operation: 'getServerLogs',
        ...readingLogs,
        summary:
          'Returns lines of a server log in base64: the last ones, those from a time on, or those after an index.',
        response: wire.LogsAnswer,
      },
      async ({ params, query }) => watchLog(servers.log, await logOf(params, query), wire.toLog),
    ),
    watched(
      `${SERVERS}/:server_id/log-lines`,
      {
        operation: 'getServerLogLines',
        ...readingLogs,
        summary: 'Returns lines of a server log as text: the last ones, those from a time on, or those after an index.',
        response: wire.LogTextAnswer,
      },
      async ({ params, query }) => watchLog(servers.log, await logOf(params, query), wire.toLogText),
    ),
    route(
      'GET',
      `${SERVERS}/:server_id/log-search`,
      {
        operation: 'searchServerLog',
        ...readingLogs,
        summary: `Searches a stream of a server log from its end, a few megabytes or ${LINES_PER_ANSWER_MAX} lines at a time. Go on before \`from_line\` of the answer.`,
        query: wire.LogSearchQuery,
        response: wire.LogSearchAnswer,
      },
      async ({ params, query }) => {
        const { stream, search_text: text, search_case_sensitive: is_case_sensitive = false, before_line } = query;
        const { server_id } = await servers.get(scopeOf(params), params.server_id);
        const matches = await servers.searchLog({ server_id, stream }, before_line, { text, is_case_sensitive });
        return wire.toLogSearch(matches);
      },
    ),
  ];
}
