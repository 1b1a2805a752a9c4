import { LobbyIndex } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import type { SeatRequest } from '../../src/features/lobbies/matchmaking/seat-requests.ts';

/** A request that waits to be decided. */
export interface Waiting {
  request: SeatRequest;
  attempts: number;
  /** Whether it waits for its turn where it cannot be seated. */
  is_patient: boolean;
}

/** A process: what it remembers of the lobbies, how far that goes, and who waits to be decided. */
export interface Machine {
  index: LobbyIndex;
  shown: number;
  waiting: Waiting[];
  /** Those who wait for their turn. */
  queued: Waiting[];
}

export const createMachine = (): Machine => ({ index: new LobbyIndex(), shown: 0, waiting: [], queued: [] });
