import { drizzle } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import type { Queries } from './database.ts';
import { type Deadlines, withDeadlines } from './deadlines.ts';

/** Runs statements one after another. */
export type DedicatedConnection = Pick<Queries, 'execute'>;

/**
 * Opens a connection for some statements only. It connects at the first one. If a statement misses its deadline, a new
 * connection replaces this one, which may be dead: all later statements would wait behind the late one.
 */
export function openDedicatedConnection(
  connect: () => postgres.Sql,
  deadlines: Deadlines,
  onFailure: (error: unknown) => void = () => {},
) {
  function open() {
    const client = connect();
    const renew = () => {
      if (is_ended || current.client !== client) return;
      current = open();
      // Statements that wait behind the late one fail with DATABASE_UNAVAILABLE.
      client.end({ timeout: 0 }).catch(() => {});
    };
    return { client, queries: drizzle(withDeadlines(client, deadlines, { onLate: renew, onFailure })) };
  }

  let is_ended = false;
  let current = open();
  const connection: DedicatedConnection = {
    get execute() {
      return current.queries.execute.bind(current.queries);
    },
  };
  const end = (options: { timeout: number }) => {
    is_ended = true;
    return current.client.end(options);
  };
  return { connection, end };
}
