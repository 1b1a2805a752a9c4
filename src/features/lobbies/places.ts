/** A running lobby as far as seats are concerned. */
export interface OpenLobby {
  lobby_id: string;
  version_id: string;
  game_mode: string;
  region: string;
  tags: Record<string, string>;
  is_closed: boolean;
  /** A private one is never found. */
  publicity: 'public' | 'private' | null;
  max_players_normal: number;
  max_players_direct: number;
  max_players_party: number;
  player_count: number;
}

/** Lobbies among which a find may choose: those of one version, game mode and region. */
export interface Shelf {
  version_id: string;
  game_mode: string;
  region: string;
}

const EXAMINED_MAX = 128;

/**
 * The running lobbies of a namespace, in memory, by what a find asks for and by how full they are: finding the fullest one
 * with a place takes as many steps as there are different numbers of free places, not as many as there are lobbies. It
 * proposes; the database decides.
 */
export class Places {
  readonly #lobbies = new Map<string, OpenLobby>();
  /** By shelf and who may come, then by free places for him. A closed lobby is on no shelf. */
  readonly #shelves = new Map<string, Map<number, Map<string, OpenLobby>>>();

  /** By shelf: all of them, those too that nobody is offered. */
  readonly #all = new Map<string, Map<string, OpenLobby>>();

  get(lobby_id: string): OpenLobby | undefined {
    return this.#lobbies.get(lobby_id);
  }

  /** Notes how a lobby is now. */
  set(lobby: OpenLobby): void {
    this.delete(lobby.lobby_id);
    this.#lobbies.set(lobby.lobby_id, lobby);
    getOrMake(this.#all, nameOf(lobby), () => new Map<string, OpenLobby>()).set(lobby.lobby_id, lobby);
    if (lobby.is_closed || lobby.publicity === 'private') return;
    for (const admission of ['single', 'party'] as const) {
      const free = freePlaces(lobby, admission);
      if (free < 1) continue;
      const shelf = getOrMake(this.#shelves, keyOf(lobby, admission), () => new Map<number, Map<string, OpenLobby>>());
      getOrMake(shelf, free, () => new Map<string, OpenLobby>()).set(lobby.lobby_id, lobby);
    }
  }

  /** Forgets a lobby: it has stopped. */
  delete(lobby_id: string): void {
    const lobby = this.#lobbies.get(lobby_id);
    if (!lobby) return;
    this.#lobbies.delete(lobby_id);
    const all = this.#all.get(nameOf(lobby));
    all?.delete(lobby_id);
    if (all?.size === 0) this.#all.delete(nameOf(lobby));
    for (const admission of ['single', 'party'] as const) {
      const key = keyOf(lobby, admission);
      const shelf = this.#shelves.get(key);
      const free = freePlaces(lobby, admission);
      const row = shelf?.get(free);
      row?.delete(lobby_id);
      if (row?.size === 0) shelf?.delete(free);
      if (shelf?.size === 0) this.#shelves.delete(key);
    }
  }

  /** Takes seats in a lobby, until the database says how it is. */
  take(lobby_id: string, seats: number): void {
    const lobby = this.#lobbies.get(lobby_id);
    if (lobby) this.set({ ...lobby, player_count: lobby.player_count + seats });
  }

  /** The lobbies of a shelf, those too that nobody is offered. */
  allOf(shelf: Shelf): Iterable<OpenLobby> {
    return this.#all.get(nameOf(shelf))?.values() ?? [];
  }

  /** The lobbies of a shelf with so many places together and all of the tags, the fullest first; looks at 128 at most. */
  *fullestFirst(shelf: Shelf, tags: Record<string, string>, seats = 1): Generator<OpenLobby> {
    let examined = 0;
    const rows = this.#shelves.get(keyOf(shelf, admissionOf(seats)));
    const large_enough = [...(rows?.keys() ?? [])].filter((free) => free >= seats);
    for (const free of large_enough.sort((a, b) => a - b)) {
      for (const lobby of rows?.get(free)?.values() ?? []) {
        examined += 1;
        if (examined > EXAMINED_MAX) return;
        if (hasTags(lobby, tags)) yield lobby;
      }
    }
  }
}

/** Whoever comes with others may take places that are not for those who come alone, where a game mode has such. */
export type Admission = 'single' | 'party';

export function admissionOf(seats: number): Admission {
  return seats > 1 ? 'party' : 'single';
}

/** Places that a find may take. */
export function freePlaces(lobby: Omit<OpenLobby, 'lobby_id'>, admission: Admission = 'single'): number {
  return (admission === 'party' ? lobby.max_players_party : lobby.max_players_normal) - lobby.player_count;
}

/** Places that somebody who knows the lobby may take. */
export function freeDirectPlaces({ max_players_direct, player_count }: OpenLobby): number {
  return max_players_direct - player_count;
}

/** Whether a lobby has all of the tags; it may have more. */
export function hasTags(lobby: Pick<OpenLobby, 'tags'>, tags: Record<string, string>): boolean {
  return Object.entries(tags).every(([name, value]) => lobby.tags[name] === value);
}

function nameOf({ version_id, game_mode, region }: Shelf): string {
  return `${version_id} ${game_mode} ${region}`;
}

function keyOf(shelf: Shelf, admission: Admission): string {
  return `${admission} ${nameOf(shelf)}`;
}

function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const made = make();
  map.set(key, made);
  return made;
}
