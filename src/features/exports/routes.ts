import { Type } from '@sinclair/typebox';
import { route } from '../../platform/http/route.ts';
import { AnyU64 } from '../../platform/http/shapes.ts';
import { LogStream } from '../servers/wire.ts';
import { type Exports, HISTORY_PATH, LOGS_PATH, SERVER_LOG_PATH } from './exports.ts';

const LOBBIES = '/cloud/games/:game_id/matchmaker/lobbies';
const HistoryBody = Type.Object({ query_start: AnyU64, query_end: AnyU64 });
const LogsBody = Type.Object({ stream: LogStream });
const LinkAnswer = Type.Object({ url: Type.String({ description: 'The address of a CSV file; valid for an hour.' }) });
const TextLinkAnswer = Type.Object({
  url: Type.String({ description: 'The address of a text file with a time before each line; valid for an hour.' }),
});

export function exportRoutes(exports: Exports) {
  const link_options = { allow: ['identity', 'cloud'], access: 'read', response: LinkAnswer } as const;
  const file_options = { allow: 'anyone', is_page: true, errors: ['LINK_INVALID'] } as const;
  return [
    route(
      'POST',
      `${LOBBIES}/export-history`,
      {
        operation: 'exportLobbyHistory',
        ...link_options,
        summary: 'Returns a link to the history of the lobbies that ran in a window of time (Unix milliseconds).',
        body: HistoryBody,
        errors: ['GAME_NOT_FOUND', 'VALIDATION_ERROR'],
      },
      async ({ params, body: { query_start, query_end } }) => ({
        url: exports.lobbyHistoryLink(params.game_id, { start: query_start, end: query_end }),
      }),
    ),
    route(
      'POST',
      `${LOBBIES}/:lobby_id/logs/export`,
      {
        operation: 'exportLobbyLogs',
        ...link_options,
        summary: "Returns a link to the log of a lobby's server.",
        body: LogsBody,
        errors: ['GAME_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      async ({ params, body }) => ({ url: await exports.lobbyLogsLink(params, body.stream) }),
    ),
    route(
      'POST',
      '/games/:game_id/environments/:environment_id/servers/:server_id/logs/export',
      {
        operation: 'exportServerLog',
        ...link_options,
        response: TextLinkAnswer,
        summary: 'Returns a link to a log of a server.',
        body: LogsBody,
        errors: ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND', 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params: { game_id, environment_id: namespace_id, server_id }, body }) => ({
        url: await exports.serverLogLink({ game_id, namespace_id }, server_id, body.stream),
      }),
    ),
    route('GET', HISTORY_PATH, { ...file_options, summary: 'Returns a lobby history as CSV.' }, async ({ request }) =>
      download(exports.lobbyHistory(request.url), 'lobby-history.csv', 'text/csv'),
    ),
    route(
      'GET',
      LOGS_PATH,
      { ...file_options, summary: "Returns the log of a lobby's server as CSV." },
      async ({ request }) => download(exports.lobbyLogs(request.url), 'lobby-logs.csv', 'text/csv'),
    ),
    route(
      'GET',
      SERVER_LOG_PATH,
      { ...file_options, summary: 'Returns a log of a server as text.' },
      async ({ request }) => download(exports.serverLog(request.url), 'server-log.txt', 'text/plain'),
    ),
  ];
}

function download(content: ReadableStream<Uint8Array>, name: string, type: string): Response {
  return new Response(content, {
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'content-disposition': `attachment; filename="${name}"`,
      'cache-control': 'no-store',
    },
  });
}
