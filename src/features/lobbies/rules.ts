import type { Shelf } from './matchmaking/lobby-index.ts';

const WARM_WAIT_MAX_MS = 60_000;

/** Whether a lobby was made for nobody yet, and nobody has come to it. */
export function isUntouched({ idle_ts, create_ts }: { idle_ts: Date | null; create_ts: Date }): boolean {
  return idle_ts?.getTime() === create_ts.getTime();
}

/** Of the empty lobbies of a namespace, longest empty first, those that are more than their place keeps. */
export function surplusLobbies<Lobby extends { game_mode: string; region: string }>(
  longest_empty_first: Lobby[],
  idleMax: (place: { game_mode: string; region: string }) => number,
): Lobby[] {
  const groups = Map.groupBy(longest_empty_first, ({ game_mode, region }) => `${game_mode} ${region}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const kept = first ? idleMax(first) : 0;
    return group.slice(0, Math.max(0, group.length - kept));
  });
}

/** Where lobbies are to be kept warm, and how many. */
export interface WantedShelf extends Shelf {
  namespace_id: string;
  min: number;
}

/** How many lobbies each shelf lacks. Where they ended by themselves, the next ones wait: 2 s, 4 s, to a minute. */
export function missingLobbies<Wanted extends WantedShelf>(
  wanted: Wanted[],
  idle: (Shelf & { namespace_id: string; count: number })[],
  failing: (Shelf & { namespace_id: string; failures: number; last_ts: Date })[],
  now: Date,
): { shelf: Wanted; count: number }[] {
  const nameOf = (shelf: Shelf & { namespace_id: string }) =>
    `${shelf.namespace_id} ${shelf.version_id} ${shelf.game_mode} ${shelf.region}`;
  const counts = new Map(idle.map((shelf) => [nameOf(shelf), shelf.count]));
  const failures = new Map(failing.map((shelf) => [nameOf(shelf), shelf]));
  return wanted.flatMap((shelf) => {
    const failed = failures.get(nameOf(shelf));
    const wait_ms = failed ? Math.min(WARM_WAIT_MAX_MS, 1_000 * 2 ** failed.failures) : 0;
    if (failed && now.getTime() < failed.last_ts.getTime() + wait_ms) return [];
    const count = shelf.min - (counts.get(nameOf(shelf)) ?? 0);
    return count > 0 ? [{ shelf, count }] : [];
  });
}

/** Of the lobbies that may be listed, those that are: empty ones only where their game mode has no other. */
export function listedLobbies<Lobby extends { game_mode: string; player_count: number }>(lobbies: Lobby[]): Lobby[] {
  const groups = Map.groupBy(lobbies, ({ game_mode }) => game_mode);
  return [...groups.values()].flatMap((group) => {
    const inhabited = group.filter(({ player_count }) => player_count > 0);
    return inhabited.length > 0 ? inhabited : group.slice(0, 1);
  });
}
