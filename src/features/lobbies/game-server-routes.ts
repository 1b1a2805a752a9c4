import { badBody, parseJson } from '../../platform/http/json.ts';
import { route } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { nameAt, PREFIXES, type Prefix } from '../matchmaker-paths.ts';
import { LIMITS } from './limits.ts';
import type { Lobbies } from './lobbies.ts';
import * as wire from './wire.ts';

const STATE_BYTES_MAX = 65_536;

/** Callers with development tokens may make all these calls, but they change nothing. */
const ALLOWED = ['lobby', 'development'] as const;
const LOBBY_ERRORS = ['MATCHMAKER_LOBBY_NOT_FOUND', 'MATCHMAKER_LOBBY_STOPPED'] as const;
const PLAYER_ERRORS = ['TOKEN_ERROR', 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY'] as const;
/** A report about the lobby. */
const LOBBY_REPORT = { allow: ALLOWED, response: Empty, errors: LOBBY_ERRORS } as const;
/** A report about a player. */
const PLAYER_REPORT = { allow: ALLOWED, response: Empty, limit: LIMITS.players } as const;

/** Routes that the server of a lobby calls. */
export function lobbyGameServerRoutes(lobbies: Lobbies) {
  return PREFIXES.flatMap((prefix) => routesAt(prefix, lobbies));
}

function routesAt(prefix: Prefix, lobbies: Lobbies) {
  return [
    route(
      'POST',
      `${prefix}/lobbies/ready`,
      {
        operation: nameAt(prefix, 'setLobbyReady'),
        summary: 'Reports that the lobby takes players. Waiting requests are answered now.',
        ...LOBBY_REPORT,
        errors: [...LOBBY_ERRORS, 'GATEWAY_SERVER_NOT_READY'],
        limit: LIMITS.ready,
        body: Empty,
      },
      async ({ caller }) => {
        if (caller.kind === 'lobby') await lobbies.ready(caller);
        return {};
      },
    ),
    route(
      'PUT',
      `${prefix}/lobbies/closed`,
      {
        operation: nameAt(prefix, 'setLobbyClosed'),
        summary: 'Closes the lobby to find, or opens it again. Players can still join a closed lobby by its id.',
        ...LOBBY_REPORT,
        limit: LIMITS.closing,
        body: wire.ClosedBody,
      },
      async ({ caller, body }) => {
        if (caller.kind === 'lobby') await lobbies.setClosed(caller, body.is_closed);
        return {};
      },
    ),
    route(
      'PUT',
      `${prefix}/lobbies/state`,
      {
        operation: nameAt(prefix, 'setLobbyState'),
        summary: 'Sets the state of the lobby: any JSON. An empty body removes it.',
        ...LOBBY_REPORT,
        limit: LIMITS.states,
        body_kind: 'text',
      },
      async ({ caller, text }) => {
        if (Buffer.byteLength(text) > STATE_BYTES_MAX) throw badBody(`a state has at most ${STATE_BYTES_MAX} bytes`);
        // The text is stored as it is, so this only checks that it is JSON.
        parseJson(text);
        if (caller.kind === 'lobby') await lobbies.setState(caller, text);
        return {};
      },
    ),
    route(
      'GET',
      `${prefix}/lobbies/:lobby_id/state`,
      {
        operation: nameAt(prefix, 'getLobbyState'),
        summary: 'Returns the state of a lobby of the same namespace; null if it has none.',
        allow: ALLOWED,
        errors: LOBBY_ERRORS,
      },
      async ({ caller, params }) => {
        const state = caller.kind === 'lobby' ? await lobbies.getState(caller, params.lobby_id) : '{}';
        return new Response(state ?? 'null', { headers: { 'content-type': 'application/json' } });
      },
    ),
    route(
      'POST',
      `${prefix}/players/connected`,
      {
        operation: nameAt(prefix, 'connectPlayer'),
        summary: 'Reports that a player connected with this token. If the answer is an error, reject the player.',
        ...PLAYER_REPORT,
        body: wire.PlayerBody,
        errors: [
          ...PLAYER_ERRORS,
          'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
          'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED',
          'MATCHMAKER_PLAYER_REMOVED',
        ],
      },
      async ({ caller, body }) => {
        if (caller.kind === 'lobby') await lobbies.reportConnectFromServer(caller, body.player_token);
        else await lobbies.development.checkPlayer(caller, body.player_token);
        return {};
      },
    ),
    route(
      'POST',
      `${prefix}/players/disconnected`,
      {
        operation: nameAt(prefix, 'disconnectPlayer'),
        summary: 'Reports that a player has left the lobby, or lost the connection.',
        ...PLAYER_REPORT,
        body: wire.LeftBody,
        errors: PLAYER_ERRORS,
      },
      async ({ caller, body }) => {
        if (caller.kind === 'lobby') await lobbies.reportLeaveFromServer(caller, body);
        else await lobbies.development.checkPlayer(caller, body.player_token);
        return {};
      },
    ),
  ];
}
