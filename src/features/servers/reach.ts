import type { Queries } from '../../platform/database/database.ts';
import { describeEnd } from './end-description.ts';
import * as store from './store.ts';
import type { ServerPort } from './tables.ts';

/** Whether a server can be reached, and where. */
export type ServerReach =
  | { is: 'running'; game_id: string; namespace_id: string; node_id: string; ports: Record<string, ServerPort> }
  | { is: 'not_ready' }
  /** `how` continues a sentence that begins with the server. */
  | { is: 'ended'; how: string };

/** Returns whether a server can be reached, whatever its environment; undefined if there is none. */
export async function reachServer(queries: Queries, server_id: string): Promise<ServerReach | undefined> {
  const server = await store.selectReach(queries, server_id);
  if (!server) return undefined;
  const { game_id, namespace_id, node_id, ports, started_at, ended_at } = server;
  // A program may run, and its lobby be ready, before its start is recorded.
  const has_address = started_at !== null || Object.values(ports).some(({ public_hostname }) => public_hostname);
  if (ended_at !== null) return { is: 'ended', how: describeEnd(server) };
  if (!has_address || node_id === null) return { is: 'not_ready' };
  return { is: 'running', game_id, namespace_id, node_id, ports };
}
