import { badBody, parseJson } from '../../platform/http/body.ts';
import { route, watched } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { see } from '../../platform/watch/sights.ts';
import { CoordinatesQuery, readCoordinates } from '../coordinates.ts';
import * as listingWire from './listing-wire.ts';
import type { Lobbies } from './lobbies.ts';
import * as wire from './wire.ts';

/** The matchmaker has two addresses: below the base, and the specification's {matchmaker_url}/v1. */
const PREFIXES = ['/matchmaker', '/v1'] as const;

const STATE_BYTES_MAX = 65_536;

const SEAT_ERRORS = [
  'NAMESPACE_NOT_FOUND',
  'MATCHMAKER_IDENTITY_REQUIRED',
  'MATCHMAKER_LOBBY_STOPPED',
  'MATCHMAKER_TOO_MANY_LOBBIES',
] as const;
const FIND_ERRORS = [
  ...SEAT_ERRORS,
  'MATCHMAKER_AUTO_CREATE_FAILED',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
  'MATCHMAKER_FIND_DISABLED',
  'MATCHMAKER_GAME_MODE_NOT_FOUND',
  'MATCHMAKER_NO_AVAILABLE_LOBBIES',
  'MATCHMAKER_NO_GAME_MODE_PROVIDED',
  'MATCHMAKER_PARTY_TOO_LARGE',
  'MATCHMAKER_REGION_NOT_FOUND',
  'MATCHMAKER_TAGS_DISABLED',
  'MATCHMAKER_TAG_NAME_TOO_LONG',
  'MATCHMAKER_TAG_TOO_LONG',
  'MATCHMAKER_TOO_MANY_TAGS',
] as const;
const JOIN_ERRORS = [
  ...SEAT_ERRORS,
  'MATCHMAKER_JOIN_DISABLED',
  'MATCHMAKER_LOBBY_FULL',
  'MATCHMAKER_LOBBY_NOT_FOUND',
] as const;
const CREATE_ERRORS = [
  ...SEAT_ERRORS,
  'MATCHMAKER_AUTO_CREATE_FAILED',
  'MATCHMAKER_CUSTOM_LOBBIES_DISABLED',
  'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
  'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
  'MATCHMAKER_GAME_MODE_NOT_FOUND',
  'MATCHMAKER_PARTY_TOO_LARGE',
  'MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE',
  'MATCHMAKER_REGION_NOT_FOUND',
  'MATCHMAKER_TAGS_DISABLED',
  'MATCHMAKER_TAG_NAME_TOO_LONG',
  'MATCHMAKER_TAG_TOO_LONG',
  'MATCHMAKER_TOO_MANY_TAGS',
] as const;
const LOBBY_ERRORS = ['MATCHMAKER_LOBBY_NOT_FOUND', 'MATCHMAKER_LOBBY_STOPPED'] as const;
const PLAYER_ERRORS = ['TOKEN_ERROR', 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY'] as const;

export function lobbyRoutes(lobbies: Lobbies) {
  return PREFIXES.flatMap((prefix) => [
    ...playerRoutes(prefix, lobbies),
    ...listingRoutes(prefix, lobbies),
    ...hostRoutes(prefix, lobbies),
  ]);
}

/** What a game's clients call. */
function playerRoutes(prefix: (typeof PREFIXES)[number], lobbies: Lobbies) {
  return [
    route(
      'POST',
      `${prefix}/lobbies/find`,
      {
        summary: 'A seat in an open lobby, or in one made for it. Answers when the lobby is ready.',
        allow: ['public', 'development'],
        is_tokenless: true,
        body: wire.FindBody,
        response: wire.JoinAnswer,
        errors: FIND_ERRORS,
      },
      async ({ caller, body, address, ray_id, signal }) =>
        caller.kind === 'development'
          ? await lobbies.mock.join(caller, body)
          : await lobbies.find(caller, body, { address, ray_id, signal }),
    ),
    route(
      'POST',
      `${prefix}/lobbies/create`,
      {
        summary: "A lobby of the player's own, with his seat in it. Answers when it is ready.",
        allow: ['public', 'development'],
        is_tokenless: true,
        body: wire.CreateBody,
        response: wire.JoinAnswer,
        errors: CREATE_ERRORS,
      },
      async ({ caller, body, address, ray_id, signal }) =>
        caller.kind === 'development'
          ? await lobbies.mock.join(caller, body)
          : await lobbies.create(caller, body, { address, ray_id, signal }),
    ),
    route(
      'POST',
      `${prefix}/lobbies/join`,
      {
        summary: 'A seat in a lobby that the player knows.',
        allow: ['public', 'development'],
        is_tokenless: true,
        body: wire.JoinBody,
        response: wire.JoinAnswer,
        errors: JOIN_ERRORS,
      },
      async ({ caller, body, address, ray_id, signal }) => {
        const { code, lobby_id } = body;
        if (lobby_id === undefined && code === undefined) throw badBody('expected "lobby_id", or "code" instead');
        if (caller.kind === 'development') return await lobbies.mock.join(caller, body);
        const wanted = { ...body, lobby_id: lobby_id?.toLowerCase() };
        return await lobbies.join(caller, wanted, { address, ray_id, signal });
      },
    ),
  ];
}

/** What a game's clients may know. */
function listingRoutes(prefix: (typeof PREFIXES)[number], { listing, mock }: Lobbies) {
  const listed = { allow: ['public', 'development'], is_tokenless: true, errors: ['NAMESPACE_NOT_FOUND'] } as const;
  return [
    watched(
      `${prefix}/lobbies/list`,
      {
        ...listed,
        summary: 'The public lobbies of the current version.',
        query: listingWire.ListQuery,
        response: listingWire.Listing,
      },
      ({ caller: { kind, namespace_id }, query: { include_state = false, ...place } }) => {
        const coordinates = readCoordinates(place);
        return kind === 'development'
          ? see(mock.list, { namespace_id, include_state }, (list) => list)
          : see(listing.list, { namespace_id, include_state, coordinates }, (list) => list);
      },
    ),
    watched(
      `${prefix}/lobbies/:lobby_id`,
      {
        ...listed,
        summary: 'A running lobby, with its state.',
        response: listingWire.LobbyAnswer,
        errors: ['NAMESPACE_NOT_FOUND', ...LOBBY_ERRORS],
      },
      ({ caller: { kind, namespace_id }, params: { lobby_id } }) =>
        see(kind === 'development' ? mock.lobby : listing.lobby, { namespace_id, lobby_id }, (lobby) => ({ lobby })),
    ),
    route(
      'GET',
      `${prefix}/regions`,
      {
        ...listed,
        summary: 'The regions in which lobbies can run.',
        query: CoordinatesQuery,
        response: listingWire.RegionsAnswer,
      },
      async ({ caller, query }) => {
        const coordinates = readCoordinates(query);
        return caller.kind === 'development' ? mock.regions() : await listing.regions(coordinates);
      },
    ),
    watched(
      `${prefix}/players/statistics`,
      {
        ...listed,
        is_tokenless: false,
        summary: 'How many players have a seat, by game mode and region.',
        query: listingWire.StatisticsQuery,
        response: listingWire.Statistics,
      },
      ({ caller: { kind, namespace_id }, query: { exclude_outdated = false } }) =>
        kind === 'development'
          ? see(mock.statistics, namespace_id, (statistics) => statistics)
          : see(listing.statistics, { namespace_id, exclude_outdated }, (statistics) => statistics),
    ),
  ];
}

/** What a lobby's server calls. */
function hostRoutes(prefix: (typeof PREFIXES)[number], lobbies: Lobbies) {
  return [
    route(
      'POST',
      `${prefix}/lobbies/ready`,
      {
        summary: 'The lobby takes players from now on.',
        allow: ['lobby', 'development'],
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
        summary: 'Whether find may give away places of the lobby.',
        allow: ['lobby', 'development'],
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
        summary: 'What the lobby says of itself: any JSON, or an empty body for nothing.',
        allow: ['lobby', 'development'],
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
        summary: 'A player has come with this token. On an error the lobby sends him away.',
        allow: ['lobby', 'development'],
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
        else await lobbies.mock.checkPlayer(caller, body.player_token);
        return {};
      },
    ),
    route(
      'POST',
      `${prefix}/players/disconnected`,
      {
        summary: 'A player has left the lobby, or his connection was lost.',
        allow: ['lobby', 'development'],
        body: wire.LeftBody,
        response: Empty,
        errors: PLAYER_ERRORS,
      },
      async ({ caller, body }) => {
        if (caller.kind === 'lobby') await lobbies.disconnected(caller, body);
        else await lobbies.mock.checkPlayer(caller, body.player_token);
        return {};
      },
    ),
  ];
}
