import { toMoment } from '../../platform/database/moments.ts';
import { ServiceError } from '../../platform/errors.ts';
import { route, watched } from '../../platform/http/route.ts';
import { watchLog, watchState } from '../../platform/watch/views.ts';
import type { Servers } from '../servers/servers.ts';
import { LogsAnswer, LogsQuery, toLog } from '../servers/wire.ts';
import * as wire from './history-wire.ts';
import type { Lobbies } from './lobbies.ts';
import { ReceiptAnswer, ReceiptsAnswer } from './matchmaking/receipts-wire.ts';

const GAME = '/cloud/games/:game_id';
const NAMESPACE = `${GAME}/namespaces/:namespace_id` as const;
const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;

/** What developers ask of their lobbies. */
export function lobbyCloudRoutes(lobbies: Lobbies, servers: Servers) {
  const { history, receipts } = lobbies;
  const reading = { allow: ['identity', 'cloud'], access: 'read' } as const;
  return [
    watched(
      `${NAMESPACE}/analytics/matchmaker/live`,
      {
        operation: 'listLiveLobbies',
        ...reading,
        summary: 'The running lobbies of a namespace.',
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
          'Why the latest 64 finds, joins and creates came out as they did; not each is kept, none longer than an hour.',
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
          'Why a find, join or create came out as it did, by the ray id that its answer has in the header rvt-ray-id.',
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
        summary: 'The newest 64 lobbies of a namespace, running and ended.',
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
        summary: 'A lobby of a namespace, running or ended.',
        response: wire.PastLobbyAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      ({ params }) =>
        watchState(history.one, params, (lobby) => ({
          lobby,
          // Logs are exported on demand (logs/export); nothing lies ready.
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
        summary: 'Ends a lobby with its players. did_remove is false when no lobby of that id runs.',
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
        summary: "What a lobby's server wrote: the last lines, or those after an index.",
        query: LogsQuery,
        response: LogsAnswer,
        errors: ['GAME_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      async ({ params, query }) =>
        watchLog(servers.log, { server_id: await lobbies.serverOf(params), stream: query.stream }, toLog),
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
