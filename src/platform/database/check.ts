import { sql } from 'drizzle-orm';
import { type Finding, toFinding } from '../findings.ts';
import type { Database } from './database.ts';

/**
 * Reads whether new connections may write, which is a setting of the role and the database; open connections keep the
 * setting they began with. The order is that of process_settings in PostgreSQL's postinit.c.
 */
const CHECK = sql`
  select
    pg_is_in_recovery() as is_standby,
    current_setting('transaction_read_only')::bool or coalesce((
      select split_part(setting, '=', 2)::bool
      from pg_db_role_setting as settings, unnest(settings.setconfig) as setting
      where setting like 'default_transaction_read_only=%'
        and setdatabase in (0, (select oid from pg_database where datname = current_database()))
        and setrole in (0, (select oid from pg_roles where rolname = session_user))
      order by setrole <> 0 desc, setdatabase <> 0 desc
      limit 1
    ), false) as is_read_only`;

const READ_ONLY = 'the database is read-only (default_transaction_read_only is on)';

/** Returns why the database cannot do its work; undefined if it can. */
export async function checkDatabase({ queries, isFull }: Database): Promise<Finding | undefined> {
  try {
    const [state] = await queries.execute<{ is_standby: boolean; is_read_only: boolean }>(CHECK);
    if (state?.is_standby) return toFinding('DATABASE_STANDBY', 'the database is a standby, which takes no writes');
    if (state?.is_read_only) return toFinding('DATABASE_READ_ONLY', READ_ONLY);
    if (await isFull()) return toFinding('DATABASE_DISK_FULL', 'the disk of the database is full');
    return undefined;
  } catch {
    return toFinding('DATABASE_UNAVAILABLE', 'the database does not answer');
  }
}
