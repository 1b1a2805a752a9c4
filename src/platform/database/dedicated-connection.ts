import { drizzle } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import type { Queries } from './database.ts';
import { type Deadlines, withDeadlines } from './deadlines.ts';

/** Runs statements, one after the other. */
export type DedicatedConnection = Pick<Queries, 'execute'>;

/**
 * Statements over a connection of their own, which is opened with the first of them. When one is not answered by its
 * deadline the connection is given up: it may be dead without knowing it, and all that follow would wait behind.
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
      // Nobody waits for anything of it any more.
      client.end({ timeout: 0 }).catch(() => {});
    };
    return { client, queries: drizzle(withDeadlines(client, deadlines, { onLate: renew, onFailure })) };
  }

  let is_ended = false;
  let current = open();
  const lane: DedicatedConnection = {
    get execute() {
      return current.queries.execute.bind(current.queries);
    },
  };
  const end = (options: { timeout: number }) => {
    is_ended = true;
    return current.client.end(options);
  };
  return { lane, end };
}
