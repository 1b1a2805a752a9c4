import { sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import type {
  DatabaseLoad,
  DatabaseServerRow,
  OpenTransactionRow,
  ProgramRow,
  ReplicaRow,
  TableRow,
} from './tables.ts';

const TABLES_MAX = 10;
const PROGRAMS_MAX = 20;
const REPLICAS_MAX = 20;

/** A row as the driver returns it: big numbers and moments are texts. */
type Raw<Row> = {
  [Name in keyof Row]: Row[Name] extends Date ? string : Row[Name] extends Date | null ? string | null : Row[Name];
};

/** The transactions of this database but the one that asks. A user may see only its own. */
const OPEN_TRANSACTIONS = sql`
  select xact_start, application_name, state from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and xact_start is not null
    and pid <> pg_backend_pid()`;

/** Returns what PostgreSQL has open. Every user may count all connections in pg_stat_database, but not in pg_stat_activity. */
export async function selectLoad(queries: Queries): Promise<DatabaseLoad> {
  const [load] = await queries.execute<Raw<DatabaseLoad>>(sql`
    select
      (select coalesce(sum(numbackends), 0)::int from pg_stat_database) as connections,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) as connections_max,
      (select coalesce(max(extract(epoch from clock_timestamp() - xact_start)) * 1000, 0)::float8
        from (${OPEN_TRANSACTIONS}) as transactions) as oldest_transaction_ms`);
  return load ?? { connections: 0, connections_max: 0, oldest_transaction_ms: 0 };
}

export async function selectServer(queries: Queries): Promise<DatabaseServerRow | undefined> {
  const [row] = await queries.execute<Raw<DatabaseServerRow>>(sql`
    select current_setting('server_version') as version, pg_postmaster_start_time()::text as start_ts,
      pg_database_size(current_database())::float8 as size_bytes, pg_is_in_recovery() as is_standby,
      current_setting('transaction_read_only')::bool as is_read_only`);
  return row && { ...row, start_ts: new Date(row.start_ts) };
}

export async function selectOldestTransaction(queries: Queries): Promise<OpenTransactionRow | undefined> {
  const [row] = await queries.execute<Raw<OpenTransactionRow>>(sql`
    select xact_start::text as begin_ts, application_name as program, coalesce(state, 'unknown') as state
    from (${OPEN_TRANSACTIONS}) as transactions order by xact_start limit 1`);
  return row && { ...row, begin_ts: new Date(row.begin_ts) };
}

/** Returns what is connected to any database of the server, most connections first. */
export async function selectPrograms(queries: Queries): Promise<ProgramRow[]> {
  return await queries.execute<Raw<ProgramRow>>(sql`
    select application_name as name, host(client_addr) as address, count(*)::int as connections,
      (count(*) filter (where state = 'active'))::int as active,
      (count(*) filter (where state like 'idle in transaction%'))::int as in_transaction
    from pg_stat_activity where backend_type = 'client backend'
    group by application_name, client_addr
    order by count(*) desc, application_name, client_addr limit ${PROGRAMS_MAX}`);
}

/** Returns the largest tables with their indexes. */
export async function selectLargestTables(queries: Queries): Promise<TableRow[]> {
  const rows = await queries.execute<Raw<TableRow>>(sql`
    select relname as name, pg_total_relation_size(relid)::float8 as size_bytes, n_live_tup::float8 as rows,
      n_dead_tup::float8 as dead_rows, greatest(last_vacuum, last_autovacuum)::text as vacuum_ts
    from pg_stat_user_tables order by pg_total_relation_size(relid) desc, relname limit ${TABLES_MAX}`);
  return rows.map((row) => ({ ...row, vacuum_ts: row.vacuum_ts === null ? null : new Date(row.vacuum_ts) }));
}

/** Returns the standbys that are connected, with the part of the log that they have not replayed. */
export async function selectReplicas(queries: Queries): Promise<ReplicaRow[]> {
  return await queries.execute<Raw<ReplicaRow>>(sql`
    with replicas as (
      select application_name as name, host(client_addr) as address, coalesce(state, 'unknown') as state, pid,
        pg_wal_lsn_diff(
          case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end,
          coalesce(replay_lsn, sent_lsn)
        )::float8 as lag_bytes
      from pg_stat_replication
    )
    -- A lag that may not be seen stays null, which greatest(lag_bytes, 0) would make 0.
    select name, address, state, case when lag_bytes < 0 then 0 else lag_bytes end as lag_bytes
    from replicas order by name, pid limit ${REPLICAS_MAX}`);
}
