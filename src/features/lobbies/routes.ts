import { badBody } from '../../platform/http/json.ts';
import { route, watched } from '../../platform/http/route.ts';
import { watchState } from '../../platform/watch/views.ts';
import { CoordinatesQuery, readCoordinates } from '../coordinates.ts';
import { nameAt, PREFIXES, type Prefix } from '../matchmaker-paths.ts';
import { asWritten } from './json-as-sent.ts';
import { LIMITS } from './limits.ts';
import * as listingWire from './listing-wire.ts';
import type { Lobbies } from './lobbies.ts';
import * as wire from './wire.ts';

const SEAT_ERRORS = [
  'CAPTCHA_CAPTCHA_FAILED',
  'CAPTCHA_CAPTCHA_REQUIRED',
  'CAPTCHA_CAPTCHA_UNAVAILABLE',
  'NAMESPACE_NOT_FOUND',
  'MATCHMAKER_IDENTITY_REQUIRED',
  'MATCHMAKER_LOBBY_NOT_READY',
  'MATCHMAKER_LOBBY_STOPPED',
  'MATCHMAKER_TOO_MANY_LOBBIES',
  'MATCHMAKER_VERIFICATION_FAILED',
  'MATCHMAKER_VERIFICATION_REQUEST_FAILED',
  'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
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
  'MATCHMAKER_QUEUE_FULL',
  'MATCHMAKER_REGION_NOT_FOUND',
  'MATCHMAKER_TAGS_DISABLED',
  'MATCHMAKER_TAG_NAME_TOO_LONG',
  'MATCHMAKER_TAG_TOO_LONG',
  'MATCHMAKER_TICKET_TAKEN',
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

export function lobbyRoutes(lobbies: Lobbies) {
  return PREFIXES.flatMap((prefix) => [...playerRoutes(prefix, lobbies), ...listingRoutes(prefix, lobbies)]);
}

/** Routes by which a game's clients get seats. */
function playerRoutes(prefix: Prefix, lobbies: Lobbies) {
  return [
    route(
      'POST',
      `${prefix}/lobbies/find`,
      {
        operation: nameAt(prefix, 'findLobby'),
        summary: 'Finds a seat in an open lobby, or creates a lobby. Answers when the lobby is ready.',
        allow: ['public', 'development'],
        is_tokenless: true,
        limit: LIMITS.seats,
        body: wire.FindBody,
        response: wire.JoinAnswer,
        errors: FIND_ERRORS,
      },
      (call) => {
        const { caller, body, text } = call;
        if (caller.kind === 'development') return lobbies.development.join(caller, body);
        return lobbies.find(caller, asWritten(body, text), call);
      },
    ),
    route(
      'POST',
      `${prefix}/lobbies/create`,
      {
        operation: nameAt(prefix, 'createLobby'),
        summary: 'Creates a lobby with a seat for the player. Answers when the lobby is ready.',
        allow: ['public', 'development'],
        is_tokenless: true,
        limit: LIMITS.creates,
        body: wire.CreateBody,
        response: wire.JoinAnswer,
        errors: CREATE_ERRORS,
      },
      (call) => {
        const { caller, body, text } = call;
        if (caller.kind === 'development') return lobbies.development.join(caller, body);
        return lobbies.create(caller, asWritten(body, text), call);
      },
    ),
    route(
      'POST',
      `${prefix}/lobbies/join`,
      {
        operation: nameAt(prefix, 'joinLobby'),
        summary: 'Takes a seat in a given lobby, by its id or code. Answers when the lobby is ready.',
        allow: ['public', 'development'],
        is_tokenless: true,
        limit: LIMITS.seats,
        body: wire.JoinBody,
        response: wire.JoinAnswer,
        errors: JOIN_ERRORS,
      },
      async (call) => {
        const { caller, body, text } = call;
        const { code, lobby_id } = body;
        if (lobby_id === undefined && code === undefined) throw badBody('expected "lobby_id", or "code" instead');
        if (caller.kind === 'development') return await lobbies.development.join(caller, body);
        const join_body = { ...asWritten(body, text), lobby_id: lobby_id?.toLowerCase() };
        return await lobbies.join(caller, join_body, call);
      },
    ),
  ];
}

/** Routes by which a game's clients see lobbies, regions and statistics. */
function listingRoutes(prefix: Prefix, { listing, development }: Lobbies) {
  const listed = {
    allow: ['public', 'development'],
    is_tokenless: true,
    limit: LIMITS.browsing,
    errors: ['NAMESPACE_NOT_FOUND'],
  } as const;
  return [
    watched(
      `${prefix}/lobbies/list`,
      {
        operation: nameAt(prefix, 'listLobbies'),
        ...listed,
        summary: 'Lists the public lobbies of the current version.',
        query: listingWire.ListQuery,
        response: listingWire.Listing,
      },
      ({ caller: { kind, namespace_id }, query: { include_state = false, ...position } }) => {
        const coordinates = readCoordinates(position);
        return kind === 'development'
          ? watchState(development.list, { namespace_id, include_state }, (list) => list)
          : watchState(listing.list, { namespace_id, include_state, coordinates }, (list) => list);
      },
    ),
    watched(
      `${prefix}/lobbies/:lobby_id`,
      {
        operation: nameAt(prefix, 'getLobby'),
        ...listed,
        summary: 'Returns a running lobby with its state.',
        response: listingWire.LobbyAnswer,
        errors: ['NAMESPACE_NOT_FOUND', ...LOBBY_ERRORS],
      },
      ({ caller: { kind, namespace_id }, params: { lobby_id } }) =>
        watchState(kind === 'development' ? development.lobby : listing.lobby, { namespace_id, lobby_id }, (lobby) => ({
          lobby,
        })),
    ),
    route(
      'GET',
      `${prefix}/regions`,
      {
        operation: nameAt(prefix, 'listRegions'),
        ...listed,
        summary: 'Lists the regions in which lobbies can run.',
        query: CoordinatesQuery,
        response: listingWire.RegionsAnswer,
      },
      async ({ caller, query }) => {
        const coordinates = readCoordinates(query);
        return caller.kind === 'development' ? development.regions() : await listing.regions(coordinates);
      },
    ),
    watched(
      `${prefix}/players/statistics`,
      {
        operation: nameAt(prefix, 'getPlayerStatistics'),
        ...listed,
        is_tokenless: false,
        summary: 'Returns the number of players with a seat, by game mode and region.',
        query: listingWire.StatisticsQuery,
        response: listingWire.Statistics,
      },
      ({ caller: { kind, namespace_id }, query: { exclude_outdated = false } }) =>
        kind === 'development'
          ? watchState(development.statistics, namespace_id, (statistics) => statistics)
          : watchState(listing.statistics, { namespace_id, exclude_outdated }, (statistics) => statistics),
    ),
  ];
}
