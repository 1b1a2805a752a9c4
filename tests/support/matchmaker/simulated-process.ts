import { LobbyIndex } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';

/** A request that waits to be decided. */
export interface PendingRequest {
  request: SeatRequest;
  attempts: number;
  /** Whether it enters the queue if it gets no seats. */
  may_wait: boolean;
}

/** A process: the lobbies that it remembers, up to which change, and its undecided requests. */
export interface SimulatedProcess {
  index: LobbyIndex;
  changes_seen: number;
  undecided: PendingRequest[];
  /** The finds that wait in the queue. */
  queued: PendingRequest[];
}

export const createProcess = (): SimulatedProcess => ({
  index: new LobbyIndex(),
  changes_seen: 0,
  undecided: [],
  queued: [],
});
