import type { QueuedFind } from '../../tables.ts';

/** A running lobby, with everything that decides which requests may get a seat in it. */
export interface RunningLobby {
  lobby_id: string;
  version_id: string;
  game_mode: string;
  region: string;
  tags: Record<string, string>;
  is_closed: boolean;
  /** Finds get no seat in a private lobby. */
  publicity: 'public' | 'private' | null;
  max_players_normal: number;
  max_players_direct: number;
  max_players_party: number;
  player_count: number;
}

/** A pool: the lobbies of one version, game mode and region. A find searches in pools. */
export interface PoolKey {
  version_id: string;
  game_mode: string;
  region: string;
}

/** Parties have a maximum of their own (`max_players_party`), so their free seats are counted separately. */
export type GroupSize = 'single' | 'party';

const GROUP_SIZES = ['single', 'party'] as const;

type LobbiesById = Map<string, IndexedLobby>;

/** For each group size, lobbies that find may choose, by their number of free seats. */
type ChoosableLobbies = Record<GroupSize, Map<number, LobbiesById>>;

/** All lobbies of a pool, and those that find may choose: by each of their tags, and all of them under `ANY_TAGS`. */
interface Pool {
  all: LobbiesById;
  choosable: Map<string, ChoosableLobbies>;
}

const ANY_TAGS = '';

interface IndexedLobby extends RunningLobby {
  pool: Pool;
  /** The keys under which it is in `choosable` of the pool, if find may choose it. */
  tag_keys: string[];
}

/**
 * The running lobbies of a namespace, in memory, by pool and by free seats. A search for the fullest lobby takes as many
 * steps as there are different numbers of free seats. With several tags, it also looks at each lobby that has the rarest of
 * them. Plans use the index; the database decides.
 */
export class LobbyIndex {
  readonly #lobbies: LobbiesById = new Map();
  readonly #pools = new Map<string, Pool>();
  #avoided: ReadonlySet<string> = new Set();

  /** The finds of the namespace that wait for their turn. */
  queue: readonly QueuedFind[] = [];

  /** The number of running lobbies. */
  get size(): number {
    return this.#lobbies.size;
  }

  get(lobby_id: string): RunningLobby | undefined {
    return this.#lobbies.get(lobby_id);
  }

  /** Adds or replaces a lobby. */
  set(lobby: RunningLobby): void {
    this.delete(lobby.lobby_id);
    const pool = getOrMake(this.#pools, toPoolName(lobby), () => ({
      all: new Map(),
      choosable: new Map(),
    }));
    const { lobby_id, version_id, game_mode, region, tags, is_closed, publicity, player_count } = lobby;
    const { max_players_normal, max_players_direct, max_players_party } = lobby;
    const maxima = { max_players_normal, max_players_direct, max_players_party };
    const kept_properties = { lobby_id, version_id, game_mode, region, tags, is_closed, publicity, player_count };
    const kept = { ...kept_properties, ...maxima, pool, tag_keys: [ANY_TAGS, ...toTagKeys(tags)] };
    this.#lobbies.set(lobby_id, kept);
    pool.all.set(lobby_id, kept);
    this.#addChoosable(kept);
  }

  /** Removes a lobby, for example because it has stopped. */
  delete(lobby_id: string): void {
    const lobby = this.#lobbies.get(lobby_id);
    if (!lobby) return;
    removeChoosable(lobby);
    this.#lobbies.delete(lobby_id);
    const { all } = lobby.pool;
    all.delete(lobby_id);
    if (all.size === 0) this.#pools.delete(toPoolName(lobby));
  }

  /** Counts seats as taken until the lobby is set again from the database. */
  countPlanned(lobby_id: string, count: number): void {
    const lobby = this.#lobbies.get(lobby_id);
    if (!lobby) return;
    removeChoosable(lobby);
    lobby.player_count += count;
    this.#addChoosable(lobby);
  }

  /**
   * Sets the lobbies in which finds get no seats, because their machine's heartbeat is overdue, its process was stopped, or
   * it is being drained.
   */
  avoid(lobby_ids: ReadonlySet<string>): void {
    const before = this.#avoided;
    if (lobby_ids === before) return;
    this.#avoided = lobby_ids;
    for (const lobby_id of lobby_ids.symmetricDifference(before)) {
      const lobby = this.#lobbies.get(lobby_id);
      if (!lobby) continue;
      removeChoosable(lobby);
      this.#addChoosable(lobby);
    }
  }

  isAvoided(lobby_id: string): boolean {
    return this.#avoided.has(lobby_id);
  }

  /** Returns all lobbies of a pool, even those that find may not choose. */
  lobbiesOf(pool: PoolKey): Iterable<RunningLobby> {
    return this.#pools.get(toPoolName(pool))?.all.values() ?? [];
  }

  /** Yields the lobbies of a pool that have all of the tags and enough free seats, the fullest first. */
  *fullestFirst(key: PoolKey, tags: Record<string, string>, seats = 1): Generator<RunningLobby> {
    const by_free_seats = this.#choosableWith(key, tags)?.[toGroupSize(seats)];
    if (!by_free_seats) return;
    for (const free of smallestFirst(by_free_seats, seats)) {
      for (const lobby of by_free_seats.get(free)?.values() ?? []) {
        if (hasTags(lobby, tags)) yield lobby;
      }
    }
  }

  /** Returns the choosable lobbies of a pool that have the rarest of the tags; undefined if none has it. */
  #choosableWith(key: PoolKey, tags: Record<string, string>): ChoosableLobbies | undefined {
    const choosable = this.#pools.get(toPoolName(key))?.choosable;
    const [first = ANY_TAGS, ...others] = toTagKeys(tags);
    let rarest = choosable?.get(first);
    for (const other of others) {
      const with_other = choosable?.get(other);
      if (!rarest || !with_other) return undefined;
      if (countChoosable(with_other) < countChoosable(rarest)) rarest = with_other;
    }
    return rarest;
  }

  /** Lets finds choose a lobby, unless it is closed, private or avoided. */
  #addChoosable(lobby: IndexedLobby): void {
    if (lobby.is_closed || lobby.publicity === 'private' || this.isAvoided(lobby.lobby_id)) return;
    for (const key of lobby.tag_keys) {
      for (const size of GROUP_SIZES) {
        const free = freeSeats(lobby, size);
        if (free <= 0) continue;
        const choosable = getOrMake(lobby.pool.choosable, key, () => ({ single: new Map(), party: new Map() }));
        getOrMake(choosable[size], free, () => new Map()).set(lobby.lobby_id, lobby);
      }
    }
  }
}

/** Yields the keys from `least` on, in order. Most searches stop at the first, so the others are sorted only if needed. */
function* smallestFirst(map: ReadonlyMap<number, unknown>, least: number): Generator<number> {
  let smallest = Number.POSITIVE_INFINITY;
  for (const number of map.keys()) if (number >= least && number < smallest) smallest = number;
  if (smallest === Number.POSITIVE_INFINITY) return;
  yield smallest;
  yield* [...map.keys()].filter((number) => number > smallest).sort((a, b) => a - b);
}

/** Removes a lobby from those that finds may choose. */
function removeChoosable(lobby: IndexedLobby): void {
  const { lobby_id, pool, tag_keys } = lobby;
  for (const key of tag_keys) {
    const choosable = pool.choosable.get(key);
    if (!choosable) continue;
    for (const size of GROUP_SIZES) {
      const free = freeSeats(lobby, size);
      const lobbies = choosable[size].get(free);
      lobbies?.delete(lobby_id);
      if (lobbies?.size === 0) choosable[size].delete(free);
    }
    if (choosable.single.size === 0 && choosable.party.size === 0) pool.choosable.delete(key);
  }
}

function countChoosable({ single }: ChoosableLobbies): number {
  let count = 0;
  for (const lobbies of single.values()) count += lobbies.size;
  return count;
}

function toTagKeys(tags: Record<string, string>): string[] {
  return Object.entries(tags).map((tag) => JSON.stringify(tag));
}

export function toGroupSize(seats: number): GroupSize {
  return seats > 1 ? 'party' : 'single';
}

/** Returns the seats that a find may take. */
export function freeSeats(lobby: Omit<RunningLobby, 'lobby_id'>, size: GroupSize = 'single'): number {
  return (size === 'party' ? lobby.max_players_party : lobby.max_players_normal) - lobby.player_count;
}

/** Returns the seats that a join may take. */
export function freeDirectSeats({ max_players_direct, player_count }: RunningLobby): number {
  return max_players_direct - player_count;
}

/** Returns whether a lobby has all of the tags. It may have more. */
export function hasTags(lobby: Pick<RunningLobby, 'tags'>, tags: Record<string, string>): boolean {
  return Object.entries(tags).every(([name, value]) => lobby.tags[name] === value);
}

function toPoolName({ version_id, game_mode, region }: PoolKey): string {
  return `${version_id} ${game_mode} ${region}`;
}

function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const made = make();
  map.set(key, made);
  return made;
}
