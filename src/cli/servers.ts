import { isUuid } from '../shared/uuid.ts';
import { EXIT, Failure } from '../terminal/failure.ts';
import { paths } from './paths.ts';
import { pick } from './pick.ts';
import type { Scope, Session } from './session.ts';

interface ServerPort {
  protocol: string;
  public_hostname?: string;
  public_port?: number;
  port_range?: { min: number; max: number };
}

export interface Server {
  id: string;
  created_at: number;
  started_at?: number;
  destroyed_at?: number;
  /** The end of the pause before a restart. */
  start_after?: number;
  tags: Record<string, string>;
  network: { ports: Record<string, ServerPort> };
}

/** Ending servers that are read at a time. */
const ENDING_COUNT_MAX = 200;
/** Pages that are read of a list. */
const PAGES_MAX = 32;

/** Returns the servers of a namespace that run or start, newest first. */
export async function readServers(session: Session, scope: Scope): Promise<Server[]> {
  return (await readPages(session, scope, {})).servers;
}

/** Returns the newest servers of a namespace, also those that have ended, and all that run. The newest is first. */
export async function readNewestServers(session: Session, scope: Scope): Promise<Server[]> {
  const newest = await readPage(session, scope, { include_destroyed: 'true' });
  return mergeServers(newest, await readServers(session, scope));
}

/**
 * Returns the servers of a namespace, also those that have ended, newest first; if there are too many of them, only the
 * newest and those that run.
 */
export async function readAllServers(
  session: Session,
  scope: Scope,
): Promise<{ servers: Server[]; is_complete: boolean }> {
  const { servers, is_complete } = await readPages(session, scope, { include_destroyed: 'true' });
  return { servers: mergeServers(servers, await readServers(session, scope)), is_complete };
}

/** Returns the server of a namespace with a whole id; undefined if there is none, or the text is no whole id. */
export async function readServer({ api }: Session, scope: Scope, id: string): Promise<Server | undefined> {
  if (!isUuid(id)) return undefined;
  try {
    return (await api.get<{ server: Server }>(`${paths.servers(scope)}/${id.toLowerCase()}`)).server;
  } catch (error) {
    if (error instanceof Failure && error.exit_code === EXIT.not_found) return undefined;
    throw error;
  }
}

/**
 * Returns the server of a namespace with an id, or with an id that begins or ends with the given text. By such a part, only
 * the servers of `readAllServers` are found. Throws Failure unless there is exactly one.
 */
export async function findServer(session: Session, scope: Scope, given: string): Promise<Server> {
  const whole = await readServer(session, scope, given);
  if (whole) return whole;
  const list_command = session.commandIn(scope, 'servers --all');
  return pick((await readAllServers(session, scope)).servers, given, {
    what: 'server',
    idOf: ({ id }) => id,
    list_command,
  });
}

/** Reads the pages of a list up to an empty one, because any page may be short. */
async function readPages(
  session: Session,
  scope: Scope,
  query: Record<string, string>,
): Promise<{ servers: Server[]; is_complete: boolean }> {
  const found: Server[] = [];
  let is_complete = false;
  for (let page = 0; page < PAGES_MAX && !is_complete; page += 1) {
    const servers = await readPage(session, scope, { ...query, cursor: found.at(-1)?.id });
    found.push(...servers);
    is_complete = servers.length === 0;
  }
  return { servers: found, is_complete };
}

async function readPage({ api }: Session, scope: Scope, query: Record<string, string | undefined>): Promise<Server[]> {
  return (await api.get<{ servers: Server[] }>(paths.servers(scope), { query })).servers;
}

/** Returns the ids of the servers of a namespace that are ending: their end was requested, and they still run. */
export async function readEndingIds({ api }: Session, scope: Scope): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let is_last = false; !is_last; ) {
    const query = { status: 'ending', from: String(ids.size), count: String(ENDING_COUNT_MAX) };
    const { rows } = await api.get<{ rows: { server_id: string }[] }>(paths.serverRows(scope), { query });
    for (const { server_id } of rows) ids.add(server_id);
    is_last = rows.length < ENDING_COUNT_MAX;
  }
  return ids;
}

/** Returns the servers of two lists, each once. */
function mergeServers(servers: Server[], others: Server[]): Server[] {
  const known = new Set(servers.map(({ id }) => id));
  return [...servers, ...others.filter(({ id }) => !known.has(id))];
}
