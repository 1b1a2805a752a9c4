import type { LimitedClient } from '../client-limits.ts';
import type { Search } from '../request-checks.ts';

/** A request for seats that a round decides. */
export type SeatRequest = FindRequest | JoinRequest;

interface RequestBase {
  /** The player of the first seat. */
  player_id: string;
  /** The other players of a party. A party gets all of its seats in one lobby, or none. */
  others?: readonly string[];
  /** Whether the plan lists the candidates for the request's receipt. */
  is_explained?: boolean;
  game_id: string;
  namespace_id: string;
  address: string;
  client: LimitedClient;
}

export interface FindRequest extends RequestBase {
  kind: 'find';
  version_id: string;
  search: Search;
  /** Set while the find waits in the queue. */
  ticket?: string;
  /** The maximum number of lobbies of the namespace, if known. */
  lobby_count_max?: number;
}

export interface JoinRequest extends RequestBase {
  kind: 'join';
  lobby_id: string;
}

/** A request that gets its seats when a lobby is created. */
export type FirstRequest = Pick<RequestBase, 'player_id' | 'others' | 'address' | 'client'> &
  Pick<FindRequest, 'ticket'>;

/** Returns new ids for the players of a request. */
export function createPlayerIds({ players = 1 }: { players?: number | undefined }): {
  player_id: string;
  others: string[];
} {
  return { player_id: Bun.randomUUIDv7(), others: Array.from({ length: players - 1 }, () => Bun.randomUUIDv7()) };
}

/** Returns the ids of all players of a request. */
export function playerIdsOf({ player_id, others = [] }: Pick<RequestBase, 'player_id' | 'others'>): string[] {
  return [player_id, ...others];
}

export const countSeats = ({ others }: Pick<RequestBase, 'others'>): number => 1 + (others?.length ?? 0);
