import type { OpenLobby } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import { type FindRequest, playerIdsOf } from '../../src/features/lobbies/matchmaking/seat-requests.ts';
import type { QueuedFind } from '../../src/features/lobbies/tables.ts';

/** Those who wait for their turn, as the one truth has them. */
export class WorldLine {
  rows: QueuedFind[] = [];
  #places = 0;

  /** Puts somebody at the end. */
  enter(ticket: string, request: FindRequest): void {
    const { version_id, search } = request;
    const { game_modes, regions, tags } = search;
    this.#places += 1;
    const row = { ticket, place: this.#places, seats: playerIdsOf(request).length };
    this.rows = [...this.rows, { ...row, version_id, game_modes, regions, tags }];
  }

  /** Somebody who waits has looked again, by another version. */
  move(ticket: string | undefined, version_id: string): void {
    this.rows = this.rows.map((row) => (row.ticket === ticket ? { ...row, version_id } : row));
  }

  leave(ticket: string | undefined): void {
    this.rows = this.rows.filter((row) => row.ticket !== ticket);
  }

  placeOf(request: object): number {
    const ticket = 'ticket' in request ? request.ticket : undefined;
    return this.rows.find((row) => row.ticket === ticket)?.place ?? Infinity;
  }

  /** Those before a place, but for some. */
  before(place: number, except: object[]): QueuedFind[] {
    const places = except.map((request) => this.placeOf(request));
    return this.rows.filter((row) => row.place < place && !places.includes(row.place));
  }
}

/** Whether one of those who wait could ever sit in a lobby. */
export function isAwaited(
  lobby: Omit<OpenLobby, 'lobby_id' | 'is_closed' | 'player_count'>,
  waiting: QueuedFind[],
): boolean {
  return waiting.some(
    ({ version_id, game_modes, regions, tags, seats }) =>
      lobby.publicity !== 'private' &&
      game_modes.includes(lobby.game_mode) &&
      // What he looks for by another version is not known yet.
      (version_id !== lobby.version_id || regions.includes(lobby.region)) &&
      Object.entries(tags).every(([name, value]) => lobby.tags[name] === value) &&
      seats <= (seats > 1 ? lobby.max_players_party : lobby.max_players_normal),
  );
}
