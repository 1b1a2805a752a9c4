import { readFileSync } from 'node:fs';

interface UserRange {
  first: number;
  count: number;
}

/**
 * Users that servers run as where we are root. Of the wide range, which systemd's list of users calls unused, no two
 * Musters on a machine will ever take the same by chance; the narrow one, below `nobody`, is for containers that have
 * 65,536 users and no more.
 */
export const WIDE: UserRange = { first: 0x70000000, count: 0x0ffffffe };
export const NARROW: UserRange = { first: 61_000, count: 4_534 };

/** The range that this machine has, by the lines of /proc/self/uid_map: first user inside, first outside, count. */
export function userRangeOf(uid_map: string): UserRange {
  const has_wide = uid_map.split('\n').some((line) => {
    const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return inside <= WIDE.first && inside + count >= WIDE.first + WIDE.count;
  });
  return has_wide ? WIDE : NARROW;
}

const RANGE = userRangeOf(readFileSync('/proc/self/uid_map', 'utf8'));

/** Whether a user is one of those that servers get. */
export function isServerUser(user_id: number): boolean {
  return [WIDE, NARROW].some(({ first, count }) => user_id >= first && user_id < first + count);
}

/** A user that none of ours runs as; undefined when there are no more. */
export function findFreeUserId(taken: ReadonlySet<number>, { first, count } = RANGE): number | undefined {
  const start = Math.floor(Math.random() * count);
  for (let step = 0; step <= taken.size && step < count; step += 1) {
    const user_id = first + ((start + step) % count);
    if (!taken.has(user_id)) return user_id;
  }
  return undefined;
}
