import type { NamespacePool } from './tables.ts';

const WARM_WAIT_MAX_MS = 60_000;

/** How long a ready warm lobby that is closed counts as preparing. */
const PREPARES_WITHIN_MS = 300_000;

/** Returns the earliest closing time of a ready warm lobby that still counts as preparing. */
export function preparingSince(now: Date): Date {
  return new Date(now.getTime() - PREPARES_WITHIN_MS);
}

interface PossiblyPreparing {
  idle_ts: Date | null;
  create_ts: Date;
  ready_ts: Date | null;
  closed_ts: Date | null;
}

/**
 * Returns whether a closed lobby may still be preparing: it was created without players, has had none since, and is not
 * ready yet or was closed a short time ago.
 */
function isPreparing({ idle_ts, create_ts, ready_ts, closed_ts }: PossiblyPreparing, now: Date): boolean {
  const is_untouched = idle_ts?.getTime() === create_ts.getTime();
  return is_untouched && (ready_ts === null || (closed_ts !== null && closed_ts > preparingSince(now)));
}

interface IdleLobby extends PossiblyPreparing {
  game_mode: string;
  region: string;
  is_closed: boolean;
}

/**
 * Returns the empty lobbies beyond those that their game mode keeps in their region: first those that are not ready, because
 * players would wait for them. As many closed ones are kept as open or preparing ones: closing a lobby does not end it,
 * and a closed one does not take the place of one for finds. So none is kept while the namespace has its maximum of lobbies.
 */
export function surplusLobbies<Lobby extends IdleLobby>(
  longest_empty_first: Lobby[],
  { now, has_room }: { now: Date; has_room: boolean },
  idleMax: (pool: { game_mode: string; region: string }) => number,
): Lobby[] {
  const isForFinds = (lobby: Lobby) => !lobby.is_closed || isPreparing(lobby, now);
  const groups = Map.groupBy(longest_empty_first, (lobby) => `${lobby.game_mode} ${lobby.region} ${isForFinds(lobby)}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const kept = first && (has_room || isForFinds(first)) ? idleMax(first) : 0;
    const unready_first = group.toSorted(
      (one, other) => Number(one.ready_ts !== null) - Number(other.ready_ts !== null),
    );
    return unready_first.slice(0, Math.max(0, group.length - kept));
  });
}

/** A pool in which at least `min` warm lobbies are kept. */
export interface WarmPool extends NamespacePool {
  min: number;
}

/**
 * Returns how many lobbies each pool lacks. Leaves out a pool for 2 s, 4 s and so on, up to a minute, after lobbies in
 * it stopped by themselves.
 */
export function missingLobbies<Pool extends WarmPool>(
  pools: Pool[],
  warm: (NamespacePool & { count: number })[],
  failing: (NamespacePool & { failures: number; last_ts: Date })[],
  now: Date,
): { pool: Pool; count: number }[] {
  const nameOf = ({ namespace_id, version_id, game_mode, region }: NamespacePool) =>
    `${namespace_id} ${version_id} ${game_mode} ${region}`;
  const counts = new Map(warm.map((pool) => [nameOf(pool), pool.count]));
  const failures = new Map(failing.map((pool) => [nameOf(pool), pool]));
  return pools.flatMap((pool) => {
    const failed = failures.get(nameOf(pool));
    const wait_ms = failed ? Math.min(WARM_WAIT_MAX_MS, 1_000 * 2 ** failed.failures) : 0;
    if (failed && now.getTime() < failed.last_ts.getTime() + wait_ms) return [];
    const count = pool.min - (counts.get(nameOf(pool)) ?? 0);
    return count > 0 ? [{ pool, count }] : [];
  });
}

/** Returns the lobbies to list: of each game mode those with players, or one empty lobby if none has players. */
export function listedLobbies<Lobby extends { game_mode: string; player_count: number }>(lobbies: Lobby[]): Lobby[] {
  const groups = Map.groupBy(lobbies, ({ game_mode }) => game_mode);
  return [...groups.values()].flatMap((group) => {
    const with_players = group.filter(({ player_count }) => player_count > 0);
    return with_players.length > 0 ? with_players : group.slice(0, 1);
  });
}
