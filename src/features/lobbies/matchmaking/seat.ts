import type { LobbyRow } from '../tables.ts';

/** The committed seats of a request: one for each of its players, in one lobby. */
export interface Seat {
  lobby_id: string;
  code: string | null;
  /** Slug of the datacenter. */
  region: string;
  /** The ports of the lobby; null until it is ready. */
  ports: LobbyRow['ports'];
  /** Whether the lobby was created for this request, alone or together with others. */
  is_new: boolean;
}

export function toSeat(
  { lobby_id, code, region, ports }: Pick<LobbyRow, 'lobby_id' | 'code' | 'region' | 'ports'>,
  is_new: boolean,
): Seat {
  return { lobby_id, code, region, ports, is_new };
}
