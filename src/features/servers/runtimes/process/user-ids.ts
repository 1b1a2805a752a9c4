import { readdirSync, readFileSync } from 'node:fs';
import { listProcesses, readUserIds } from '../../../../platform/system/processes.ts';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';

interface UserRange {
  first: number;
  count: number;
}

/**
 * Ranges of users for servers, if the service runs as root. The wide range is not used in systemd's list of users, and is
 * so large that two services on one machine hardly choose the same user. The narrow one ends below the user `nobody`, for
 * containers with only 65,536 users. It overlaps the users that systemd gives to services.
 */
export const WIDE: UserRange = { first: 0x70000000, count: 0x0ffffffe };
export const NARROW: UserRange = { first: 61_000, count: 4_534 };

/** Returns the range of this machine, from the lines of /proc/self/uid_map: first user inside, first outside, count. */
export function userRangeOf(uid_map: string): UserRange {
  const has_wide = uid_map.split('\n').some((line) => {
    const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return inside <= WIDE.first && inside + count >= WIDE.first + WIDE.count;
  });
  return has_wide ? WIDE : NARROW;
}

const RANGE = userRangeOf(readFileSync('/proc/self/uid_map', 'utf8'));

/** Returns whether a user belongs to the servers' range. */
export function isServerUser(user_id: number): boolean {
  return [WIDE, NARROW].some(({ first, count }) => user_id >= first && user_id < first + count);
}

const SYSTEMD_USERS = '/run/systemd/dynamic-uid';

/** Lists the users of the narrow range that processes have, or that systemd has given to a service. */
export function listForeignUsers(systemd_users = SYSTEMD_USERS): number[] {
  const user_ids = [...listProcesses().flatMap(readUserIds), ...listSystemdUsers(systemd_users)];
  return [...new Set(user_ids)].filter((user_id) => user_id >= NARROW.first && user_id < NARROW.first + NARROW.count);
}

/** Systemd has a file for each user, and links by their names. */
function listSystemdUsers(directory: string): number[] {
  try {
    return readdirSync(directory).filter(isNumber).map(Number);
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT')) throw error;
    return [];
  }
}

const isNumber = (name: string) => /^\d+$/.test(name);

/** Returns the users that no server of this machine may get, besides the users of its other servers. */
export const listReservedUsers = (): number[] => (RANGE === NARROW ? listForeignUsers() : []);

/** Returns a user that no server runs as; undefined if all are taken. */
export function findFreeUserId(taken: ReadonlySet<number>, { first, count } = RANGE): number | undefined {
  const start = Math.floor(Math.random() * count);
  for (let step = 0; step <= taken.size && step < count; step += 1) {
    const user_id = first + ((start + step) % count);
    if (!taken.has(user_id)) return user_id;
  }
  return undefined;
}
