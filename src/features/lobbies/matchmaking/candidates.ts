import type { Considered } from '../receipts-wire.ts';
import { admissionOf, freePlaces, hasTags, type OpenLobby, type Places } from './lobby-index.ts';
import type { FindRequest } from './planner.ts';
import type { Awaited, Line } from './queue-order.ts';

/** Lobbies that a receipt names. */
const CONSIDERED_MAX = 16;

/** The lobbies that a find might have come to, the chosen one first, each other with the one reason it was passed over. */
export function explain(
  request: FindRequest,
  places: Places,
  line: Line | undefined,
  chosen: OpenLobby | undefined,
): Considered[] {
  const { version_id, search } = request;
  const considered: Considered[] = chosen ? [toConsidered(chosen, undefined)] : [];
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      for (const lobby of places.allOf({ version_id, game_mode, region })) {
        if (considered.length === CONSIDERED_MAX) return considered;
        if (lobby !== chosen) considered.push(toConsidered(lobby, reasonAgainst(lobby, request, line)));
      }
    }
  }
  return considered;
}

function reasonAgainst(
  lobby: OpenLobby,
  request: FindRequest,
  line: Line | undefined,
): NonNullable<Considered['passed_over']> {
  const seats = 1 + (request.others?.length ?? 0);
  if (lobby.is_closed) return 'closed';
  if (lobby.publicity === 'private') return 'private';
  if (freePlaces(lobby, admissionOf(seats)) < seats) return 'full';
  if (!hasTags(lobby, request.search.tags)) return 'tags';
  return isAwaited(lobby, request, line) === 'no' ? 'less_full' : 'awaited';
}

export function toConsidered(lobby: OpenLobby, passed_over: Considered['passed_over']): Considered {
  const { lobby_id, game_mode, region, player_count } = lobby;
  const seen = { lobby_id, game_mode_id: game_mode, region_id: region, player_count };
  return passed_over === undefined ? seen : { ...seen, passed_over };
}

/** Whether somebody waits for a lobby's places who was there before. */
export function isAwaited(lobby: OpenLobby, request: Pick<FindRequest, 'ticket'>, line: Line | undefined): Awaited {
  return line?.isAwaited(lobby, lobby.lobby_id, line.placeOf(request)) ?? 'no';
}
