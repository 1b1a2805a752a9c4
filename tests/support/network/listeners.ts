import { sql } from 'drizzle-orm';

/**
 * A condition on rows of pg_stat_activity: the connection on which a service listens for notifications. It shows the last
 * statement, and a service checks this connection every 5 s. Connections of a pool whose last statement was the same one may
 * be among them.
 */
export const IS_LISTENER = sql`(query ilike 'listen %' or query = 'select 1') and pid <> pg_backend_pid()`;
