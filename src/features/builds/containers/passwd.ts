/** The user of a process in a container, as numbers. */
export interface ContainerUser {
  uid: number;
  gid: number;
  /** The other groups of the user. */
  additionalGids: number[];
  /** The home directory; undefined if the user has no entry. */
  home: string | undefined;
}

/** The files of a container that name its users and groups; empty if it has none. */
export interface UserFiles {
  passwd: string;
  group: string;
}

const ID_MAX = 0x7f_ff_ff_ff;
const GROUPS_MAX = 1_000;

interface PasswdEntry {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

interface GroupEntry {
  name: string;
  gid: number;
  members: string[];
}

/**
 * Resolves a user as an image names it: nothing for root, or `user`, `user:group`, each a name or a number. Returns
 * undefined if a name has no entry.
 */
export function resolveUser(wanted: string, files: UserFiles): ContainerUser | undefined {
  const [user_name = '', group_name] = wanted === '' ? ['0'] : wanted.split(':', 2);
  const groups = parseGroups(files.group);
  const entry = parseUsers(files.passwd).find(({ name, uid }) => name === user_name || uid === parseId(user_name));
  const uid = entry?.uid ?? parseId(user_name);
  const gid = group_name ? findGroup(group_name, groups) : (entry?.gid ?? 0);
  if (uid === undefined || gid === undefined) return undefined;
  // A group that is named explicitly is the only one, as in Docker.
  const of_user = group_name || !entry ? [] : groups.filter(({ members }) => members.includes(entry.name));
  const additionalGids = [...new Set(of_user.map((group) => group.gid))].filter((id) => id !== gid);
  return { uid, gid, additionalGids: additionalGids.slice(0, GROUPS_MAX), home: entry?.home };
}

function findGroup(wanted: string, groups: GroupEntry[]): number | undefined {
  return groups.find(({ name }) => name === wanted)?.gid ?? parseId(wanted);
}

function parseUsers(text: string): PasswdEntry[] {
  return linesOf(text).flatMap(([name = '', , uid = '', gid = '', , home = '']) => {
    const ids = { uid: parseId(uid), gid: parseId(gid) };
    return ids.uid === undefined || ids.gid === undefined ? [] : [{ name, uid: ids.uid, gid: ids.gid, home }];
  });
}

function parseGroups(text: string): GroupEntry[] {
  return linesOf(text).flatMap(([name = '', , id = '', members = '']) => {
    const gid = parseId(id);
    return gid === undefined ? [] : [{ name, gid, members: members.split(',') }];
  });
}

function linesOf(text: string): string[][] {
  return text.split('\n').map((line) => line.trim().split(':'));
}

function parseId(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) && Number(text) <= ID_MAX ? Number(text) : undefined;
}
