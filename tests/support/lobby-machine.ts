import { LobbyIndex } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import type { SeatRequest } from '../../src/features/lobbies/matchmaking/seat-requests.ts';

/** A request that waits to be decided. */
export interface PendingRequest {
  request: SeatRequest;
  attempts: number;
  /** Whether it enters the queue if it gets no seats. */
  is_patient: boolean;
}

/** A process: what it remembers of the lobbies, up to which change, and its undecided requests. */
export interface Machine {
  index: LobbyIndex;
  changes_seen: number;
  undecided: PendingRequest[];
  /** The finds that wait in the queue. */
  queued: PendingRequest[];
}

export const createMachine = (): Machine => ({ index: new LobbyIndex(), changes_seen: 0, undecided: [], queued: [] });
