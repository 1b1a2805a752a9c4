import type { QueuedFind } from '../tables.ts';
import { hasTags, type OpenLobby } from './lobby-index.ts';

/** A lobby as far as it matters who waits for it. */
export type AwaitedLobby = Pick<
  OpenLobby,
  'version_id' | 'game_mode' | 'region' | 'tags' | 'publicity' | 'max_players_normal' | 'max_players_party'
>;

/** The place of whoever does not stand in line: after all others. */
const NO_PLACE = Number.POSITIVE_INFINITY;

/** Whether somebody before a place waits for a lobby; `moving`: only such who are going to sit elsewhere, as it is planned. */
export type Awaited = 'no' | 'moving' | 'yes';

/** A lobby in a plan: the id of one that there is, or the one that is to be made. */
type PlanKey = string | object;

/**
 * The finds of a namespace that wait, while a round is planned. Nobody is offered what another waits for who stands before
 * him: no place in a lobby that the other could ever sit in, and no new lobby.
 */
export class Line {
  readonly #waiting: QueuedFind[];
  readonly #places: Map<string, number>;
  /** Whoever could sit in a lobby, in order. */
  readonly #candidates = new Map<PlanKey, QueuedFind[]>();
  /** Where those are going to sit for whom there is a place. */
  readonly #going = new Map<QueuedFind, PlanKey>();

  constructor(queue: readonly QueuedFind[]) {
    this.#waiting = queue.toSorted((one, other) => one.place - other.place);
    this.#places = new Map(queue.map(({ ticket, place }) => [ticket, place]));
  }

  /** The place of somebody's ticket. */
  placeOf({ ticket }: { ticket?: string | undefined }): number {
    return (ticket === undefined ? undefined : this.#places.get(ticket)) ?? NO_PLACE;
  }

  /** Whoever has the place is going to sit in a lobby. */
  go(place: number, key: PlanKey): void {
    const found = this.#waiting.find((one) => one.place === place);
    if (found) this.#going.set(found, key);
  }

  /** Whether anybody stands before a place for whom there is none yet. */
  hasBefore(place: number): boolean {
    const first = this.#waiting.find((one) => !this.#going.has(one));
    return first !== undefined && first.place < place;
  }

  /** Whoever goes elsewhere counts until he sits there: the database does not know yet that he will. */
  isAwaited(lobby: AwaitedLobby, key: PlanKey, place: number): Awaited {
    const known = this.#candidates.get(key);
    const candidates = known ?? this.#waiting.filter((one) => suits(lobby, one));
    if (!known) this.#candidates.set(key, candidates);
    let awaited: Awaited = 'no';
    for (const one of candidates) {
      if (one.place >= place) break;
      const goes_to = this.#going.get(one);
      if (goes_to === undefined) return 'yes';
      if (goes_to !== key) awaited = 'moving';
    }
    return awaited;
  }
}

/** As `waitsFor` in admission-store.ts, which decides. */
function suits(lobby: AwaitedLobby, { version_id, game_modes, regions, tags, seats }: QueuedFind): boolean {
  return (
    lobby.publicity !== 'private' &&
    game_modes.includes(lobby.game_mode) &&
    (lobby.version_id !== version_id || regions.includes(lobby.region)) &&
    hasTags(lobby, tags) &&
    seats <= (seats > 1 ? lobby.max_players_party : lobby.max_players_normal)
  );
}
