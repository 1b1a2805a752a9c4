import type { QueuedFind } from '../tables.ts';

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
const ADMISSIONS = ['single', 'party'] as const;

type Lobbies = Map<string, KeptLobby>;

/** What stands on a shelf: all lobbies, and those that are offered, by their free places for who may come. */
interface Rows extends Record<Admission, Map<number, Lobbies>> {
  all: Lobbies;
}

interface KeptLobby extends OpenLobby {
  rows: Rows;
}

/**
 * The running lobbies of a namespace, in memory, by what a find asks for and by how full they are: finding the fullest one
 * with a place takes as many steps as there are different numbers of free places, not as many as there are lobbies. It
 * proposes; the database decides.
 */
export class Places {
  readonly #lobbies: Lobbies = new Map();
  readonly #shelves = new Map<string, Rows>();

  /** The finds of the namespace that wait for their turn. */
  queue: readonly QueuedFind[] = [];

  /** How many lobbies run. */
  get size(): number {
    return this.#lobbies.size;
  }

  get(lobby_id: string): OpenLobby | undefined {
    return this.#lobbies.get(lobby_id);
  }

  /** Notes how a lobby is now. */
  set(lobby: OpenLobby): void {
    this.delete(lobby.lobby_id);
    const rows = getOrMake(this.#shelves, nameOf(lobby), () => ({
      all: new Map(),
      single: new Map(),
      party: new Map(),
    }));
    const { lobby_id, version_id, game_mode, region, tags, is_closed, publicity, player_count } = lobby;
    const { max_players_normal, max_players_direct, max_players_party } = lobby;
    const maxima = { max_players_normal, max_players_direct, max_players_party };
    const kept = { lobby_id, version_id, game_mode, region, tags, is_closed, publicity, player_count, ...maxima, rows };
    this.#lobbies.set(lobby_id, kept);
    rows.all.set(lobby_id, kept);
    offer(kept);
  }

  /** Forgets a lobby: it has stopped. */
  delete(lobby_id: string): void {
    const lobby = this.#lobbies.get(lobby_id);
    if (!lobby) return;
    withdraw(lobby);
    this.#lobbies.delete(lobby_id);
    const { all } = lobby.rows;
    all.delete(lobby_id);
    if (all.size === 0) this.#shelves.delete(nameOf(lobby));
  }

  /** Takes seats in a lobby, until the database says how it is. */
  take(lobby_id: string, seats: number): void {
    const lobby = this.#lobbies.get(lobby_id);
    if (!lobby) return;
    withdraw(lobby);
    lobby.player_count += seats;
    offer(lobby);
  }

  /** The lobbies of a shelf, those too that nobody is offered. */
  allOf(shelf: Shelf): Iterable<OpenLobby> {
    return this.#shelves.get(nameOf(shelf))?.all.values() ?? [];
  }

  /** The lobbies of a shelf with so many places together and all of the tags, the fullest first; looks at 128 at most. */
  *fullestFirst(shelf: Shelf, tags: Record<string, string>, seats = 1): Generator<OpenLobby> {
    let examined = 0;
    const rows = this.#shelves.get(nameOf(shelf))?.[admissionOf(seats)];
    if (!rows) return;
    for (const free of smallestFirst(rows, seats)) {
      for (const lobby of rows.get(free)?.values() ?? []) {
        examined += 1;
        if (examined > EXAMINED_MAX) return;
        if (hasTags(lobby, tags)) yield lobby;
      }
    }
  }
}

/** Numbers of rows from one on, in order. Most who ask take the first: the others are not put in order for them. */
function* smallestFirst(rows: ReadonlyMap<number, unknown>, least: number): Generator<number> {
  let smallest = Number.POSITIVE_INFINITY;
  for (const number of rows.keys()) if (number >= least && number < smallest) smallest = number;
  if (smallest === Number.POSITIVE_INFINITY) return;
  yield smallest;
  yield* [...rows.keys()].filter((number) => number > smallest).sort((a, b) => a - b);
}

/** Puts a lobby where finds come by. A closed or private one is offered to nobody. */
function offer(lobby: KeptLobby): void {
  if (lobby.is_closed || lobby.publicity === 'private') return;
  for (const admission of ADMISSIONS) {
    const free = freePlaces(lobby, admission);
    if (free > 0) getOrMake(lobby.rows[admission], free, () => new Map()).set(lobby.lobby_id, lobby);
  }
}

function withdraw(lobby: KeptLobby): void {
  for (const admission of ADMISSIONS) {
    const rows = lobby.rows[admission];
    const free = freePlaces(lobby, admission);
    const row = rows.get(free);
    row?.delete(lobby.lobby_id);
    if (row?.size === 0) rows.delete(free);
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

function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const made = make();
  map.set(key, made);
  return made;
}
