import type { QueuedFind } from '../../tables.ts';
import { hasTags, type RunningLobby } from '../lobby-cache/lobby-index.ts';

/** The properties of a lobby that decide whether it suits a waiting find. */
export type LobbyForFind = Pick<
  RunningLobby,
  'version_id' | 'game_mode' | 'region' | 'tags' | 'publicity' | 'max_players_normal' | 'max_players_party'
>;

/**
 * Maximum number of comparisons in one plan, because all other games wait for it. The first lobby of a kind is compared with
 * each find of the queue, and each further one with those at its head, up to the first that has no lobby in the plan. So a
 * find can usually look at all lobbies that a namespace may have (32,767), unless they are of many kinds.
 */
const COMPARISONS_MAX = 131_072;

/** The place of a request that does not wait in the queue, after all others. */
const LAST_PLACE = Number.POSITIVE_INFINITY;

/**
 * Whether earlier finds wait for a lobby. `reassigned`: only finds that this plan seats in other lobbies, which still count
 * as waiting until the plan is committed.
 */
export type Reservation = 'none' | 'reassigned' | 'reserved';

/** A lobby in a plan: the id of a running lobby, or the planned lobby itself. */
type LobbyKey = string | object;

/**
 * The queue of a namespace while a round is planned. It keeps later requests from getting a seat or a new lobby that an
 * earlier waiting find could use.
 */
export class QueueOrder {
  readonly #waiting: QueuedFind[];
  readonly #places: Map<string, number>;
  /** The waiting finds that a lobby suits, in order: by lobby, and by the kind of lobby. */
  readonly #suited = new Map<LobbyKey, QueuedFind[]>();
  readonly #suited_by_kind = new Map<string, QueuedFind[]>();
  readonly #assigned = new Map<QueuedFind, LobbyKey>();
  #comparison_count = 0;

  constructor(queue: readonly QueuedFind[]) {
    this.#waiting = queue.toSorted((one, other) => one.place - other.place);
    this.#places = new Map(queue.map(({ ticket, place }) => [ticket, place]));
  }

  /** Whether the plan has made its maximum of comparisons. From then on, a find looks at one lobby of each pool only. */
  get is_at_maximum(): boolean {
    return this.#comparison_count >= COMPARISONS_MAX;
  }

  placeOf({ ticket }: { ticket?: string | undefined }): number {
    return (ticket === undefined ? undefined : this.#places.get(ticket)) ?? LAST_PLACE;
  }

  /** Records that the plan gives the find at this place a seat in a lobby. */
  assign(place: number, key: LobbyKey): void {
    const assigned = this.#waiting.find((find) => find.place === place);
    if (assigned) this.#assigned.set(assigned, key);
  }

  /** Returns whether a find before a place has no lobby in the plan. */
  hasUnassignedBefore(place: number): boolean {
    const first = this.#waiting.find((find) => !this.#assigned.has(find));
    return first !== undefined && first.place < place;
  }

  /** Returns the reservation of a lobby for finds before a place. */
  reservationBefore(place: number, lobby: LobbyForFind, key: LobbyKey): Reservation {
    const suited = this.#suited.get(key) ?? this.#listSuited(lobby, key);
    let reservation: Reservation = 'none';
    for (const find of suited) {
      if (find.place >= place) break;
      this.#comparison_count += 1;
      const assigned_key = this.#assigned.get(find);
      if (assigned_key === undefined) return 'reserved';
      if (assigned_key !== key) reservation = 'reassigned';
    }
    return reservation;
  }

  /** Compares a lobby with the queue, unless one of its kind was compared before. */
  #listSuited(lobby: LobbyForFind, key: LobbyKey): QueuedFind[] {
    const kind = kindOf(lobby);
    let suited = this.#suited_by_kind.get(kind);
    if (!suited) {
      this.#comparison_count += this.#waiting.length;
      suited = this.#waiting.filter((find) => suits(lobby, find));
      this.#suited_by_kind.set(kind, suited);
    }
    this.#suited.set(key, suited);
    return suited;
  }
}

/** Returns all that decides which waiting finds a lobby suits. */
function kindOf(lobby: LobbyForFind): string {
  const { version_id, game_mode, region, tags, publicity, max_players_normal, max_players_party } = lobby;
  return JSON.stringify([version_id, game_mode, region, tags, publicity, max_players_normal, max_players_party]);
}

/**
 * Returns whether a lobby suits a waiting find. `waitsFor` in admission-store.ts decides, by the same rule. That one need not
 * exclude private lobbies, because no find is planned into them.
 */
function suits(lobby: LobbyForFind, { version_id, game_modes, regions, tags, seats }: QueuedFind): boolean {
  return (
    lobby.publicity !== 'private' &&
    game_modes.includes(lobby.game_mode) &&
    (lobby.version_id !== version_id || regions.includes(lobby.region)) &&
    hasTags(lobby, tags) &&
    seats <= (seats > 1 ? lobby.max_players_party : lobby.max_players_normal)
  );
}
