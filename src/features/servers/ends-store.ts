import { sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { bump } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type Named, topicsOf } from './store.ts';
import { type ServerRow, serverPorts, servers } from './tables.ts';

/** The restart of a server that has ended. All other columns are copied from that server. */
export type Restart = Pick<ServerRow, 'server_id' | 'ports' | 'restart_count'> & { start_after: Date };

/** A server and how it ended. */
export type ServerEnd = Named &
  Pick<ServerRow, 'datacenter_id' | 'exit_code' | 'exit_signal' | 'failure' | 'has_lost_machine'> & {
    /** Its restart, unless its end has been requested meanwhile. */
    restart: Restart | undefined;
  };

/**
 * Records the ends of servers, creates their restarts and releases their ports. Returns the ids of restarts by the servers
 * that they restart. It is one statement: a kill of the service cannot separate an end from its restart, and it holds the
 * topics' rows, for which every request that creates or destroys a server waits, only briefly.
 */
export async function setEnded(queries: Queries, ends: readonly ServerEnd[], now: Date): Promise<Map<string, string>> {
  const column = (key: 'server_id' | 'exit_code' | 'exit_signal' | 'failure') => sql.param(ends.map((end) => end[key]));
  // Some as texts: the driver sends no arrays of booleans or times.
  const have_lost_machine = sql.param(ends.map((end) => String(end.has_lost_machine)));
  const restart_ids = sql.param(ends.map(({ restart }) => restart?.server_id ?? null));
  const restarts = ends.flatMap(({ restart }) => restart ?? []);
  const restarted = ends.filter(({ restart }) => restart !== undefined);
  const changed = [...ends.flatMap(topicsOf), ...restarted.map(({ datacenter_id }) => topics.work(datacenter_id))];
  const rows = await queries.execute<{ server_id: string; restart_of: string }>(sql`
    with ${bump([...changed, topics.serversEnding()])},
    ended as (
      update ${servers} set
        exit_code = ended.exit_code, exit_signal = ended.exit_signal, failure = ended.failure,
        has_lost_machine = ended.has_lost_machine,
        ended_at = ${timestamptz(now)}, destroyed_at = coalesce(${servers.destroyed_at}, ${timestamptz(now)}),
        restarted_as = case when ${servers.destroyed_at} is null then ended.restart_id end
      from unnest(
        ${column('server_id')}::uuid[], ${column('exit_code')}::int[], ${column('exit_signal')}::text[],
        ${column('failure')}::text[], ${have_lost_machine}::text[]::boolean[], ${restart_ids}::uuid[]
      ) as ended (server_id, exit_code, exit_signal, failure, has_lost_machine, restart_id)
      where ${servers.server_id} = ended.server_id and ${servers.ended_at} is null
        -- The count makes the statement lock the topics first.
        and (select count(*) from bumped) > 0
      returning ${servers}.*
    ),
    restarts as (
      insert into ${servers} (
        server_id, game_id, namespace_id, datacenter_id, build_id, tags, arguments, environment, service_environment,
        network_mode, ports, cpu, memory, kill_timeout_ms, created_at, restarts_max, chain_id, restart_of, restart_count,
        start_after
      )
      select restart.server_id, game_id, namespace_id, datacenter_id, build_id, tags, arguments, environment,
        service_environment, network_mode, restart.ports::jsonb, cpu, memory, kill_timeout_ms, ${timestamptz(now)},
        restarts_max, chain_id, ended.server_id, restart.restart_count, restart.start_after
      from ended join unnest(
        ${sql.param(restarts.map(({ server_id }) => server_id))}::uuid[],
        ${sql.param(restarts.map(({ ports }) => JSON.stringify(ports)))}::text[],
        ${sql.param(restarts.map(({ restart_count }) => restart_count))}::int[],
        ${sql.param(restarts.map(({ start_after }) => start_after.toISOString()))}::text[]::timestamptz[]
      ) as restart (server_id, ports, restart_count, start_after) on restart.server_id = ended.restarted_as
      returning server_id, restart_of
    ),
    released as (
      update ${serverPorts} set release_ts = ${timestamptz(now)}
      where server_id = any(${column('server_id')}::uuid[]) and (select count(*) from bumped) > 0
    )
    select server_id, restart_of from restarts`);
  return new Map(rows.map(({ server_id, restart_of }) => [restart_of, server_id]));
}
