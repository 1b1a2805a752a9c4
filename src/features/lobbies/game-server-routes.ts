import { badBody, parseJson } from '../../platform/http/body.ts';
import { route } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { LIMITS } from './limits.ts';
import type { Lobbies } from './lobbies.ts';
import { nameAt, PREFIXES, type Prefix } from './prefixes.ts';
import * as wire from './wire.ts';

const STATE_BYTES_MAX = 65_536;

const LOBBY_ERRORS = ['MATCHMAKER_LOBBY_NOT_FOUND', 'MATCHMAKER_LOBBY_STOPPED'] as const;
const PLAYER_ERRORS = ['TOKEN_ERROR', 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY'] as const;

/** What a lobby's server calls. */
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
        summary: 'The lobby takes players from now on.',
        allow: ['lobby', 'development'],
        limit: LIMITS.ready,
        body: Empty,
        response: Empty,
        errors: LOBBY_ERRORS,
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
        summary: 'Whether find may give away places of the lobby.',
        allow: ['lobby', 'development'],
        limit: LIMITS.closing,
        body: wire.ClosedBody,
        response: Empty,
        errors: LOBBY_ERRORS,
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
        summary: 'What the lobby says of itself: any JSON, or an empty body for nothing.',
        allow: ['lobby', 'development'],
        limit: LIMITS.states,
        body_kind: 'text',
        response: Empty,
        errors: LOBBY_ERRORS,
      },
      async ({ caller, text }) => {
        if (Buffer.byteLength(text) > STATE_BYTES_MAX) throw badBody(`a state has at most ${STATE_BYTES_MAX} bytes`);
        // It is kept as it was written; it only has to be JSON.
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
        summary: 'What a lobby of the same namespace says of itself; null when it says nothing.',
        allow: ['lobby', 'development'],
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
        summary: 'A player has come with this token. On an error the lobby rejects the player.',
        allow: ['lobby', 'development'],
        limit: LIMITS.players,
        body: wire.PlayerBody,
        response: Empty,
        errors: [
          ...PLAYER_ERRORS,
          'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
          'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED',
          'MATCHMAKER_PLAYER_REMOVED',
        ],
      },
      async ({ caller, body }) => {
        if (caller.kind === 'lobby') await lobbies.connected(caller, body.player_token);
        else await lobbies.development.checkPlayer(caller, body.player_token);
        return {};
      },
    ),
    route(
      'POST',
      `${prefix}/players/disconnected`,
      {
        operation: nameAt(prefix, 'disconnectPlayer'),
        summary: 'A player has left the lobby, or lost the connection.',
        allow: ['lobby', 'development'],
        limit: LIMITS.players,
        body: wire.LeftBody,
        response: Empty,
        errors: PLAYER_ERRORS,
      },
      async ({ caller, body }) => {
        if (caller.kind === 'lobby') await lobbies.disconnected(caller, body);
        else await lobbies.development.checkPlayer(caller, body.player_token);
        return {};
      },
    ),
  ];
}
