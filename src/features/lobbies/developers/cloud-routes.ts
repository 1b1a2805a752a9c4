import { toMoment } from '../../../platform/database/moments.ts';
import { readRfc3339 } from '../../../platform/http/moments.ts';
import { route, watched } from '../../../platform/http/route.ts';
import { Empty } from '../../../platform/http/shapes.ts';
import { watchLog, watchRows, watchState } from '../../../platform/watch/views.ts';
import type { Servers } from '../../servers/servers.ts';
import { LogsAnswer, LogsQuery, toLog, toLogQuery } from '../../servers/wire.ts';
import type { Lobbies } from '../lobbies.ts';
import { ReceiptAnswer, ReceiptsAnswer, ReceiptsQuery } from '../matchmaking/receipts/receipts-wire.ts';
import { ClosedBody } from '../wire.ts';
import { LobbyDetailsAnswer } from './details-wire.ts';
import * as wire from './developer-wire.ts';
import { RowsAnswer, RowsQuery, toWindow } from './running-rows-wire.ts';
import { toVisits, VisitsAnswer } from './visits-wire.ts';

const GAME = '/cloud/games/:game_id';
const NAMESPACE = `${GAME}/namespaces/:namespace_id` as const;
const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;

/** Routes for developers: the lobbies of their games, receipts and logs. */
export function lobbyCloudRoutes(lobbies: Lobbies, servers: Servers) {
  const { developerApi, receipts } = lobbies;
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
      ({ params }) => watchState(developerApi.running, params, (lobbies) => ({ lobbies })),
    ),
    watched(
      `${NAMESPACE}/matchmaker/lobbies`,
      {
        operation: 'listLobbyRows',
        ...reading,
        allow: ['identity', 'cloud', 'share'],
        summary:
          'Returns a window of the running lobbies of a namespace, with a summary of all. Watchers are sent the rows that change.',
        query: RowsQuery,
        response: RowsAnswer,
        errors: NOT_FOUND,
      },
      // A share link must not let its readers join. Anyone who knows the id of a private lobby may join it, so private
      // lobbies are left out.
      ({ caller, params: { namespace_id }, query }) =>
        watchRows(lobbies.rows, {
          namespace_id,
          ...toWindow(query),
          ...(caller.kind === 'share' && { includes_private: false }),
        }),
    ),
    watched(
      `${NAMESPACE}/matchmaker/receipts`,
      {
        operation: 'listReceipts',
        ...reading,
        summary:
          'Lists the receipts of the latest 64 finds, joins and creates. Receipts explain the outcome, are kept for an hour, and are not kept for every request.',
        query: ReceiptsQuery,
        response: ReceiptsAnswer,
        errors: NOT_FOUND,
      },
      ({ params, query: { before_create_ts, is_refused, code } }) => {
        const filter = { before: readCreatedBefore(before_create_ts), is_refused, code };
        return watchState(receipts.list, { ...params, ...filter }, (receipts) => ({ receipts }));
      },
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
        summary: 'Lists the newest 64 lobbies of a namespace, running and stopped.',
        query: wire.HistoryQuery,
        response: wire.HistoryAnswer,
        errors: NOT_FOUND,
      },
      ({ params, query }) =>
        watchState(
          developerApi.history,
          { ...params, before: readCreatedBefore(query.before_create_ts) },
          (lobbies) => ({
            lobbies,
          }),
        ),
    ),
    watched(
      `${NAMESPACE}/logs/lobbies/:lobby_id`,
      {
        operation: 'getLobbyHistory',
        ...reading,
        summary: 'Returns a lobby of a namespace, running or stopped.',
        response: wire.HistoryLobbyAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      ({ params }) =>
        watchState(developerApi.historyOfLobby, params, (lobby) => ({
          lobby,
          // Empty, because logs are exported on demand (logs/export).
          stdout_presigned_urls: [],
          stderr_presigned_urls: [],
          perf_lists: [],
        })),
    ),
    watched(
      `${NAMESPACE}/matchmaker/lobbies/:lobby_id`,
      {
        operation: 'getLobbyDetails',
        ...reading,
        allow: ['identity', 'cloud', 'share'],
        summary: 'Returns a lobby of a namespace, running or stopped, with its players, tags and state.',
        response: LobbyDetailsAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      // A share link must not let its readers join, so the code is left out.
      ({ caller, params }) =>
        watchState(developerApi.details, { ...params, includes_code: caller.kind !== 'share' }, (lobby) => ({ lobby })),
    ),
    watched(
      `${NAMESPACE}/matchmaker/lobbies/:lobby_id/visits`,
      {
        operation: 'listLobbyVisits',
        ...reading,
        summary:
          'Lists the players who have a seat in a lobby, running or stopped, and the latest 200 who have left it.',
        response: VisitsAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_LOBBY_NOT_FOUND'],
      },
      ({ params }) => watchState(developerApi.visits, params, toVisits),
    ),
    route(
      'DELETE',
      `${GAME}/matchmaker/lobbies/:lobby_id`,
      {
        operation: 'deleteLobby',
        recorded: ['did_remove'],
        summary: 'Stops a lobby and removes its players. did_remove is false if no lobby with that id is running.',
        allow: ['identity', 'cloud'],
        access: 'write',
        response: wire.RemoveAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => ({ did_remove: await developerApi.remove(params) }),
    ),
    route(
      'DELETE',
      `${GAME}/matchmaker/lobbies/:lobby_id/players/:player_id`,
      {
        operation: 'kickPlayer',
        recorded: ['did_remove'],
        summary:
          "Kicks a player, which frees the seat. The player's token is refused from now on. On a port whose players the gateway reports (`presence`), the gateway also closes the player's connection. did_remove is false if the player has no seat in this lobby.",
        allow: ['identity', 'cloud'],
        access: 'write',
        response: wire.RemoveAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => ({ did_remove: await developerApi.kick(params) }),
    ),
    route(
      'PUT',
      `${GAME}/matchmaker/lobbies/:lobby_id/closed`,
      {
        operation: 'setLobbyClosedByDeveloper',
        recorded: ['is_closed'],
        summary: 'Closes a lobby to find, or opens it again. Players can still join a closed lobby by its id.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: ClosedBody,
        response: Empty,
        errors: ['GAME_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_FOUND', 'MATCHMAKER_LOBBY_STOPPED'],
      },
      async ({ params, body }) => {
        await lobbies.requireLobbyOf(params);
        await lobbies.setClosed(params, body.is_closed);
        return {};
      },
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

function readCreatedBefore(text: string | undefined): Date | undefined {
  const milliseconds = readRfc3339('before_create_ts', text);
  return milliseconds === undefined ? undefined : toMoment(milliseconds);
}
