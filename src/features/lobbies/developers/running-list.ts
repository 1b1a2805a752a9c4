import type { RunningRow } from './running-rows-store.ts';

export const STATUSES = ['starting', 'open', 'closed'] as const;
export type Status = (typeof STATUSES)[number];
export const ORDERS = ['newest', 'oldest', 'fullest', 'emptiest'] as const;

/** The part of a namespace's list of lobbies that a watcher sees. */
export interface Window {
  game_mode?: string | undefined;
  region?: string | undefined;
  version_id?: string | undefined;
  /** Lobbies of this version are left out. */
  other_than_version_id?: string | undefined;
  /** A part of the id of the lobby or of its server, in lower case. */
  id?: string | undefined;
  status?: Status | undefined;
  is_empty?: boolean | undefined;
  is_full?: boolean | undefined;
  /** False to leave out private lobbies. */
  includes_private?: boolean | undefined;
  order: (typeof ORDERS)[number];
  /** The index of the first lobby, and the maximum number of lobbies. */
  from: number;
  count: number;
}

/** What lobbies add up to. */
export interface Total {
  lobbies: number;
  players: number;
  seats: number;
}

export interface Summary extends Total {
  empty: number;
  status: Record<Status, number>;
  game_modes: Record<string, Total>;
  regions: Record<string, Total>;
  versions: Record<string, Total>;
}

export function statusOf({ is_ready, is_closed }: Pick<RunningRow, 'is_ready' | 'is_closed'>): Status {
  if (!is_ready) return 'starting';
  return is_closed ? 'closed' : 'open';
}

/**
 * The running lobbies of a namespace, in the order of their age, with their summary. A change costs the same for many
 * lobbies as for few; only a window with a filter, or ordered by players, reads all of them.
 */
export class RunningList {
  readonly #by_id = new Map<string, RunningRow>();
  /** The oldest first. */
  #by_age: RunningRow[] = [];
  #summary = emptySummary();

  /** Returns what all lobbies add up to. */
  summary(): Summary {
    return structuredClone(this.#summary);
  }

  set(lobby: RunningRow): void {
    const previous = this.#by_id.get(lobby.lobby_id);
    this.#by_id.set(lobby.lobby_id, lobby);
    this.#count(lobby, 1);
    if (previous) this.#count(previous, -1);
    const index = this.#indexOf(lobby);
    this.#by_age.splice(index, previous ? 1 : 0, lobby);
  }

  delete(lobby_id: string): void {
    const lobby = this.#by_id.get(lobby_id);
    if (!lobby) return;
    this.#by_id.delete(lobby_id);
    this.#count(lobby, -1);
    this.#by_age.splice(this.#indexOf(lobby), 1);
  }

  clear(): void {
    this.#by_id.clear();
    this.#by_age = [];
    this.#summary = emptySummary();
  }

  /** Returns the lobbies of a window, in order, and how many lobbies match its filter. */
  select({ order, from, count, ...filter }: Window): { matching: number; lobbies: RunningRow[] } {
    const is_filtered = Object.values(filter).some((value) => value !== undefined);
    const matching = is_filtered ? this.#by_age.filter((lobby) => matches(lobby, filter)) : this.#by_age;
    const { length } = matching;
    const slice = (first: number, last: number) => matching.slice(Math.max(0, first), Math.max(0, last));
    switch (order) {
      case 'oldest':
        return { matching: length, lobbies: slice(from, from + count) };
      case 'newest':
        return { matching: length, lobbies: slice(length - from - count, length - from).reverse() };
      default:
        return { matching: length, lobbies: sortByPlayers(matching, order).slice(from, from + count) };
    }
  }

  /** Returns the index of the first lobby that is not older. */
  #indexOf(lobby: RunningRow): number {
    let [low, high] = [0, this.#by_age.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#by_age[middle];
      if (other && isOlder(other, lobby)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #count(lobby: RunningRow, by: 1 | -1): void {
    const summary = this.#summary;
    const { game_modes, regions, versions, status } = summary;
    status[statusOf(lobby)] += by;
    if (lobby.player_count === 0) summary.empty += by;
    addTo(summary, lobby, by);
    addTo(totalOf(game_modes, lobby.game_mode), lobby, by);
    addTo(totalOf(regions, lobby.region), lobby, by);
    addTo(totalOf(versions, lobby.version_id), lobby, by);
    if (by === 1) return;
    if (game_modes[lobby.game_mode]?.lobbies === 0) delete game_modes[lobby.game_mode];
    if (regions[lobby.region]?.lobbies === 0) delete regions[lobby.region];
    if (versions[lobby.version_id]?.lobbies === 0) delete versions[lobby.version_id];
  }
}

function matches(lobby: RunningRow, filter: Omit<Window, 'order' | 'from' | 'count'>): boolean {
  const { game_mode, region, version_id, other_than_version_id, id, status, is_empty, is_full, includes_private } =
    filter;
  const { lobby_id, server_id, player_count, max_players_normal } = lobby;
  return (
    (game_mode === undefined || lobby.game_mode === game_mode) &&
    (region === undefined || lobby.region === region) &&
    (version_id === undefined || lobby.version_id === version_id) &&
    (other_than_version_id === undefined || lobby.version_id !== other_than_version_id) &&
    (id === undefined || lobby_id.includes(id) || server_id.includes(id)) &&
    (status === undefined || statusOf(lobby) === status) &&
    (is_empty === undefined || (player_count === 0) === is_empty) &&
    (is_full === undefined || player_count >= max_players_normal === is_full) &&
    (includes_private !== false || lobby.publicity !== 'private')
  );
}

function isOlder(one: RunningRow, other: RunningRow): boolean {
  return one.create_ts === other.create_ts ? one.lobby_id < other.lobby_id : one.create_ts < other.create_ts;
}

/** Sorts lobbies by their players; those with as many keep their order. */
function sortByPlayers(lobbies: RunningRow[], order: 'fullest' | 'emptiest'): RunningRow[] {
  const by_players = [...Map.groupBy(lobbies, ({ player_count }) => player_count)];
  const sign = order === 'fullest' ? -1 : 1;
  return by_players.sort(([one], [other]) => sign * (one - other)).flatMap(([, some]) => some);
}

function emptySummary(): Summary {
  return {
    ...emptyTotal(),
    empty: 0,
    status: { starting: 0, open: 0, closed: 0 },
    game_modes: {},
    regions: {},
    versions: {},
  };
}

function emptyTotal(): Total {
  return { lobbies: 0, players: 0, seats: 0 };
}

function totalOf(totals: Record<string, Total>, name: string): Total {
  const total = (Object.hasOwn(totals, name) ? totals[name] : undefined) ?? emptyTotal();
  totals[name] = total;
  return total;
}

function addTo(total: Total, { player_count, max_players_normal }: RunningRow, by: 1 | -1): void {
  total.lobbies += by;
  total.players += by * player_count;
  total.seats += by * max_players_normal;
}
