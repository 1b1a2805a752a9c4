import { countSeats, type FindRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import type { QueuedFind } from '../../../src/features/lobbies/tables.ts';
import type { Search } from './matchmaking-rules.ts';

interface WaitingFind {
  ticket: string;
  place: number;
  search: Search;
}

/** The finds that wait in the queue, as the database has them. */
export class SimulatedQueue {
  waiting: readonly WaitingFind[] = [];
  #places = 0;

  /** Puts a find at the end. */
  enter(ticket: string, request: FindRequest): void {
    this.#places += 1;
    this.waiting = [...this.waiting, { ticket, place: this.#places, search: searchOf(request) }];
  }

  /** Records that a waiting find was decided on another version. */
  moveToVersion(ticket: string | undefined, version: string): void {
    this.waiting = this.waiting.map((one) =>
      one.ticket === ticket ? { ...one, search: { ...one.search, version } } : one,
    );
  }

  leave(ticket: string | undefined): void {
    this.waiting = this.waiting.filter((one) => one.ticket !== ticket);
  }

  /** Returns the place of a request in the queue; infinite if it does not wait. */
  placeOf(request: object): number {
    const ticket = 'ticket' in request ? request.ticket : undefined;
    return this.waiting.find((one) => one.ticket === ticket)?.place ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the searches of the finds before a place, without those of some requests. */
  before(place: number, except: object[] = []): Search[] {
    const places = except.map((request) => this.placeOf(request));
    return this.waiting.filter((one) => one.place < place && !places.includes(one.place)).map(({ search }) => search);
  }

  /** Returns the rows that a process reads. */
  rows(): QueuedFind[] {
    return this.waiting.map(({ ticket, place, search: { version, players, game_modes, regions, tags } }) => {
      const search = { game_modes: [...game_modes], regions: [...regions], tags };
      return { ticket, place, seats: players, version_id: version, ...search };
    });
  }
}

export function searchOf(request: FindRequest): Search {
  const { game_modes, regions, tags } = request.search;
  return { version: request.version_id, game_modes, regions, tags, players: countSeats(request) };
}
