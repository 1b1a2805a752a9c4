import { and, asc, eq, isNotNull, isNull, or, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { isWithin, type ServerScope, selectOnMachine, selectServer, topicsOf } from './store.ts';
import { type ServerRow, servers } from './tables.ts';

/** Maximum number of waiting servers to end in one transaction. */
const ENDED_AT_ONCE_MAX = 10_000;

/**
 * Marks a server to be ended, or if it was restarted, the last one of its chain. `override_kill_timeout_ms` replaces the
 * timeout of the server; for a server that is marked already, it can only shorten the time that is left. Returns the server,
 * or undefined if there is none.
 */
export async function destroyServer(
  tx: Tx,
  scope: ServerScope,
  server_id: string,
  { now, override_kill_timeout_ms }: { now: Date; override_kill_timeout_ms: number | undefined },
): Promise<ServerRow | undefined> {
  const named = await selectServer(tx, scope, server_id);
  const open_of_chain = named?.restarted_as ? await selectOpenOfChain(tx, scope, named) : undefined;
  const server = open_of_chain ?? named;
  const is_decided = server?.destroyed_at && override_kill_timeout_ms === undefined;
  if (!server || server.ended_at || is_decided) return server;
  await touch(tx, [...topicsOf(server), topics.serversEnding(), topics.work(server.datacenter_id)]);
  const kill_at = timestamptz(new Date(now.getTime() + (override_kill_timeout_ms ?? server.kill_timeout_ms)));
  const { destroyed_at } = servers;
  const [row] = await tx
    .update(servers)
    .set({
      destroyed_at: sql`coalesce(${destroyed_at}, ${timestamptz(now)})`,
      kill_at: sql`case when ${destroyed_at} is null then ${kill_at} else least(${servers.kill_at}, ${kill_at}) end`,
    })
    // A server that failed needs no `kill_at`, because it is ended without a timeout.
    .where(and(eq(servers.server_id, server.server_id), or(isNull(destroyed_at), isNotNull(servers.kill_at))))
    .returning();
  if (row) return row;
  const ended = await selectServer(tx, scope, server.server_id);
  if (!ended?.restarted_as) return ended;
  // It was restarted meanwhile. The restart cannot end before this transaction, which has locked a topic of each end. Its own
  // topics are locked out of order, so a deadlock with a request to end the restart is possible: one of them is repeated.
  return await destroyServer(tx, scope, ended.restarted_as, { now, override_kill_timeout_ms });
}

/** Returns the server of a chain that has not ended; undefined if there is none. */
async function selectOpenOfChain(
  queries: Queries,
  scope: ServerScope,
  { chain_id }: Pick<ServerRow, 'chain_id'>,
): Promise<ServerRow | undefined> {
  if (chain_id === null) return undefined;
  const is_open = and(isWithin(scope), eq(servers.chain_id, chain_id), isNull(servers.ended_at));
  const [row] = await queries.select().from(servers).where(is_open).limit(1);
  return row;
}

/** Marks all servers of a machine to be ended, by `kill_at` at the latest. */
export async function destroyAllOf(
  tx: Tx,
  node_id: string,
  { now, kill_at }: { now: Date; kill_at: Date },
): Promise<void> {
  const on_machine = await selectOnMachine(tx, node_id);
  const work_topics = on_machine.map(({ datacenter_id }) => topics.work(datacenter_id));
  await touch(tx, [...on_machine.flatMap(topicsOf), topics.serversEnding(), ...work_topics]);
  await tx
    .update(servers)
    .set({
      destroyed_at: sql`coalesce(${servers.destroyed_at}, ${timestamptz(now)})`,
      kill_at: sql`least(${servers.kill_at}, ${timestamptz(kill_at)})`,
    })
    .where(and(eq(servers.node_id, node_id), isNull(servers.ended_at)));
}

/**
 * Marks servers that wait for a machine of a datacenter to be ended, those first that have waited longest. Returns whether
 * more may remain.
 */
export async function destroyWaiting(tx: Tx, datacenter_id: string, now: Date): Promise<boolean> {
  const is_waiting = and(
    eq(servers.datacenter_id, datacenter_id),
    isNull(servers.node_id),
    isNull(servers.destroyed_at),
  );
  const waiting = await tx
    .select({ server_id: servers.server_id, namespace_id: servers.namespace_id })
    .from(servers)
    .where(is_waiting)
    .orderBy(asc(servers.created_at))
    .limit(ENDED_AT_ONCE_MAX);
  if (waiting.length === 0) return false;
  await touch(tx, [...waiting.flatMap(topicsOf), topics.serversEnding(), topics.work(datacenter_id)]);
  const server_ids = waiting.map(({ server_id }) => server_id);
  await tx
    .update(servers)
    .set({ destroyed_at: now, kill_at: now })
    .where(and(sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`, is_waiting));
  return waiting.length === ENDED_AT_ONCE_MAX;
}

/** Marks the servers of a machine that have no lobby to be ended, each within its own timeout. Returns how many. */
export async function destroyWithoutLobby(tx: Tx, node_id: string, now: Date): Promise<number> {
  const on_machine = (await selectOnMachine(tx, node_id)).filter(
    ({ token_caller, destroyed_at }) => !token_caller && !destroyed_at,
  );
  if (on_machine.length === 0) return 0;
  const work_topics = on_machine.map(({ datacenter_id }) => topics.work(datacenter_id));
  await touch(tx, [...on_machine.flatMap(topicsOf), topics.serversEnding(), ...work_topics]);
  const server_ids = on_machine.map(({ server_id }) => server_id);
  await tx
    .update(servers)
    .set({
      destroyed_at: timestamptz(now),
      kill_at: sql`${timestamptz(now)} + ${servers.kill_timeout_ms} * interval '1 ms'`,
    })
    .where(and(sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`, isNull(servers.destroyed_at)));
  return on_machine.length;
}
