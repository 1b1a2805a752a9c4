import { freeSeats, hasTags, type LobbyIndex, type RunningLobby, toGroupSize } from '../lobby-cache/lobby-index.ts';
import type { QueueOrder, Reservation } from '../queue/queue-order.ts';
import type { Candidate } from '../receipts/receipts-wire.ts';
import { countSeats, type FindRequest } from './seat-requests.ts';

/** Maximum number of lobbies in a receipt. */
const CANDIDATES_MAX = 16;

/** Returns the lobbies of a find's pools: the chosen one first, then the others with why they were not chosen. */
export function listCandidates(
  request: FindRequest,
  index: LobbyIndex,
  order: QueueOrder | undefined,
  chosen: RunningLobby | undefined,
): Candidate[] {
  const { version_id, search } = request;
  const candidates: Candidate[] = chosen ? [toCandidate(chosen, undefined)] : [];
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      for (const lobby of index.lobbiesOf({ version_id, game_mode, region })) {
        if (candidates.length === CANDIDATES_MAX) return candidates;
        if (lobby !== chosen) candidates.push(toCandidate(lobby, reasonAgainst(lobby, request, index, order)));
      }
    }
  }
  return candidates;
}

function reasonAgainst(
  lobby: RunningLobby,
  request: FindRequest,
  index: LobbyIndex,
  order: QueueOrder | undefined,
): NonNullable<Candidate['passed_over']> {
  const seats = countSeats(request);
  if (lobby.is_closed) return 'closed';
  if (lobby.publicity === 'private') return 'private';
  if (freeSeats(lobby, toGroupSize(seats)) < seats) return 'full';
  if (!hasTags(lobby, request.search.tags)) return 'tags';
  if (index.isAvoided(lobby.lobby_id)) return 'machine';
  return reservationAgainst(request, lobby, order) === 'none' ? 'less_full' : 'awaited';
}

export function toCandidate(lobby: RunningLobby, passed_over: Candidate['passed_over']): Candidate {
  const { lobby_id, game_mode, region, player_count } = lobby;
  const candidate = { lobby_id, game_mode_id: game_mode, region_id: region, player_count };
  return passed_over === undefined ? candidate : { ...candidate, passed_over };
}

/** Returns the reservation of a running lobby for finds that came before a request. */
export function reservationAgainst(
  request: Pick<FindRequest, 'ticket'>,
  lobby: RunningLobby,
  order: QueueOrder | undefined,
): Reservation {
  return order?.reservationBefore(order.placeOf(request), lobby, lobby.lobby_id) ?? 'none';
}
