// The rules by which players get seats, each stated once, as plainly as possible. The model, the simulation, the race
// and the properties of the planner compare the service with them. They share no code with it.

/** The maximum of players that each kind of arrival counts against. */
export type Maxima = Record<'normal' | 'direct' | 'party', number>;

/** The properties of a lobby that decide who gets a seat there. They never change. */
export interface LobbyTraits {
  version: string;
  game_mode: string;
  region: string;
  tags: Record<string, string>;
  publicity: 'public' | 'private' | null;
  maxima: Maxima;
}

/** The search of a find. */
export interface Search {
  version: string;
  game_modes: readonly string[];
  regions: readonly string[];
  tags: Record<string, string>;
  players: number;
}

/** Players who request seats together: all get one, or none does. */
export interface Arrival {
  kind: 'find' | 'join';
  players: number;
  /** The number of players who still have their seat; all of them by default. */
  remaining?: number;
}

/** A lobby with the number of seats that are taken. */
export interface TakenSeats {
  maxima: Maxima;
  taken: number;
}

/** A join counts against the maximum for joins, a find against that for single players or that for parties. */
export function maximumFor({ maxima }: Pick<LobbyTraits, 'maxima'>, { kind, players }: Arrival): number {
  if (kind === 'join') return maxima.direct;
  return players > 1 ? maxima.party : maxima.normal;
}

/** Returns the free seats for a kind of arrival; below zero if others had a higher maximum. */
export const freeSeats = (lobby: TakenSeats, arrival: Arrival): number => maximumFor(lobby, arrival) - lobby.taken;

export const hasRoom = (lobby: TakenSeats, arrival: Arrival): boolean => freeSeats(lobby, arrival) >= arrival.players;

/** Returns whether all arrivals have room in some order: the one with the lowest maximum first. */
export function haveRoom({ maxima, taken }: TakenSeats, arrivals: Arrival[]): boolean {
  let count = taken;
  return arrivals
    .map((arrival) => ({ maximum: maximumFor({ maxima }, arrival), players: arrival.remaining ?? arrival.players }))
    .toSorted((one, other) => one.maximum - other.maximum)
    .every(({ maximum, players }) => {
      count += players;
      return count <= maximum;
    });
}

/** Returns whether a lobby suits the search of a find, apart from its seats. */
export function suits(lobby: LobbyTraits & { is_closed: boolean }, search: Search): boolean {
  return (
    !lobby.is_closed &&
    lobby.publicity !== 'private' &&
    lobby.version === search.version &&
    search.game_modes.includes(lobby.game_mode) &&
    search.regions.includes(lobby.region) &&
    hasTags(lobby, search.tags)
  );
}

/** Returns the lobbies that a find may get: with room, and the fewest free seats. */
export function fullest<Lobby extends TakenSeats>(lobbies: Lobby[], players: number): Lobby[] {
  const arrival = { kind: 'find', players } as const;
  const open = lobbies.filter((lobby) => hasRoom(lobby, arrival));
  const fewest = Math.min(...open.map((lobby) => freeSeats(lobby, arrival)));
  return open.filter((lobby) => freeSeats(lobby, arrival) === fewest);
}

/**
 * Returns whether a lobby is reserved for a waiting find that could get its seats there, so that no later find does. In
 * another version than its own, the regions of a waiting find are unknown, so all count.
 */
export function isReserved(lobby: LobbyTraits, waiting: Search[]): boolean {
  return waiting.some(
    ({ version, game_modes, regions, tags, players }) =>
      lobby.publicity !== 'private' &&
      game_modes.includes(lobby.game_mode) &&
      (version !== lobby.version || regions.includes(lobby.region)) &&
      hasTags(lobby, tags) &&
      players <= maximumFor(lobby, { kind: 'find', players }),
  );
}

/** Returns whether a request may create a lobby: no find waits before it, and the namespace is below its limit. */
export function mayCreateLobby(now: { running: number; lobby_count_max: number; waiting_before: number }): boolean {
  return now.waiting_before === 0 && now.running < now.lobby_count_max;
}

/** Returns whether a client would be over its limit. */
export function isOverLimit(client: { seated: number; players_max: number }, arriving: number): boolean {
  return client.seated + arriving > client.players_max;
}

export function hasTags(lobby: Pick<LobbyTraits, 'tags'>, wanted: Record<string, string>): boolean {
  return Object.entries(wanted).every(([name, value]) => lobby.tags[name] === value);
}
