import { ownerOf, type ServerFolders } from './server-folders.ts';
import { findFreeUserId, listReservedUsers } from './user-ids.ts';

/** The users that servers run as. The owner of a server's work directory is the record of its user. */
export interface ServerUsers {
  /** Returns the user of a server; undefined if the server has none, or has the user of this process. */
  userOf(server_id: string): number | undefined;
  /** Returns the user to start a server as; undefined for the user of this process. */
  assign(server_id: string): number | undefined;
  release(server_id: string): void;
}

/** Opens the users of servers. `is_separate`: each server gets its own user, so that servers cannot affect each other. */
export function openServerUsers(folders: ServerFolders, { is_separate }: { is_separate: boolean }): ServerUsers {
  const own_id = process.getuid?.();
  const user_ids = new Map<string, number>();

  function userOf(server_id: string): number | undefined {
    const known = user_ids.get(server_id) ?? ownerOf(folders.work(server_id));
    if (known === undefined) return undefined;
    user_ids.set(server_id, known);
    return known === own_id ? undefined : known;
  }

  // Reads the users of all servers first, so that no user is assigned twice.
  for (const server_id of folders.list()) userOf(server_id);

  return {
    userOf,
    assign(server_id) {
      const assigned = userOf(server_id);
      if (assigned !== undefined || !is_separate) return assigned;
      const user_id = findFreeUserId(new Set([...user_ids.values(), ...listReservedUsers()]));
      if (user_id === undefined) throw new Error('every user for game servers of this machine is in use');
      user_ids.set(server_id, user_id);
      return user_id;
    },
    release: (server_id) => void user_ids.delete(server_id),
  };
}
