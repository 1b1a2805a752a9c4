import { toMoment } from '../../platform/database/moments.ts';
import { ServiceError } from '../../platform/errors.ts';
import { route, watched } from '../../platform/http/route.ts';
import { watchLog, watchState } from '../../platform/watch/views.ts';
import type { Servers } from '../servers/servers.ts';
import { LogsAnswer, LogsQuery, toLog, toLogQuery } from '../servers/wire.ts';
import * as wire from './history-wire.ts';
import type { Lobbies } from './lobbies.ts';
import { ReceiptAnswer, ReceiptsAnswer } from './matchmaking/receipts-wire.ts';

const GAME = '/cloud/games/:game_id';
const NAMESPACE = `${GAME}/namespaces/:namespace_id` as const;
const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;

/** Routes for developers: the lobbies of their games, receipts and logs. */
export function lobbyCloudRoutes(lobbies: Lobbies, servers: Servers) {
  const { history, receipts } = lobbies;
  const reading = { allow: ['identity', 'cloud'], access: 'read' } as const;
  return [
    watched(
      `${NAMESPACE}/analytics/matchmaker/live`,
      {
        operation: 'listLiveLobbies',
        ...reading,
        summary: 'Lists the running lobbies of a namespace.',
        response: wire.LiveAnswer,
        errors: NOT_FOUND,
      },
      ({ params }) => watchState(history.live, params, (lobbies) => ({ lobbies })),
    ),
    route(
      'GET',
      `${NAMESPACE}/matchmaker/receipts`,
      {
        operation: 'listReceipts',
        ...reading,
        summary:
          'Lists the receipts of the latest 64 finds, joins and creates. Receipts explain the outcome, are kept for an hour, and are not kept for every request.',
        query: wire.HistoryQuery,
        response: ReceiptsAnswer,
        errors: NOT_FOUND,
      },
      async ({ params, query }) => ({
        receipts: await receipts.list(params.namespace_id, readMoment(query.before_create_ts)),
      }),
    ),
    route(
      'GET',
      `${NAMESPACE}/matchmaker/receipts/:ray_id`,
      {
        operation: 'getReceipt',
        ...reading,
        summary:
          'Returns the receipt of a find, join or create, which explains the outcome. The ray id is in the header rvt-ray-id of the answer.',
        response: ReceiptAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_RECEIPT_NOT_FOUND'],
      },
      async ({ params }) => ({ receipt: await receipts.get(params.namespace_id, params.ray_id) }),
    ),
    watched(
      `${NAMESPACE}/logs/lobbies`,
      {
        operation: 'listLobbyHistory',
        ...reading,
        summary: 'Lists the newest 64 lobbies of a namespace, running and ended.',
        query: wire.HistoryQuery,
        response: wire.HistoryAnswer,
        errors: NOT_FOUND,
      },
      ({ params, query }) =>
        watchState(history.list, { ...params, before: readMoment(query.before_create_ts) }, (lobbies) => ({ lobbies })),
    ),
    watched(
      `${NAMESPACE}/logs/lobbies/:lobby_id`,
      {
        operation: 'getLobbyHistory',
        ...reading,
        summary: 'Returns a lobby of a namespace, running or ended.',
        response: wire.PastLobbyAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      ({ params }) =>
        watchState(history.one, params, (lobby) => ({
          lobby,
          // Empty, because logs are exported on demand (logs/export).
          stdout_presigned_urls: [],
          stderr_presigned_urls: [],
          perf_lists: [],
        })),
    ),
    route(
      'DELETE',
      `${GAME}/matchmaker/lobbies/:lobby_id`,
      {
        operation: 'deleteLobby',
        summary: 'Ends a lobby and removes its players. did_remove is false if no lobby with that id is running.',
        allow: ['identity', 'cloud'],
        access: 'write',
        response: wire.RemoveAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => ({ did_remove: await history.remove(params) }),
    ),
    watched(
      `${GAME}/matchmaker/lobbies/:lobby_id/logs`,
      {
        operation: 'getLobbyLogs',
        ...reading,
        summary:
          "Returns lines of the log of a lobby's server: the last ones, those from a time on, or those after an index.",
        query: LogsQuery,
        response: LogsAnswer,
        errors: ['GAME_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_FOUND', 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params, query }) =>
        watchLog(servers.log, { server_id: await lobbies.serverOf(params), ...toLogQuery(query) }, toLog),
    ),
  ];
}

function readMoment(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const milliseconds = Date.parse(text);
  if (Number.isNaN(milliseconds)) {
    throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: 'before_create_ts', error: 'expected RFC 3339' });
  }
  return toMoment(milliseconds);
}
