import type { Assume, SQL } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import { type Deadlines, limitClient } from './deadlines.ts';
import { retryConflicts } from './retries.ts';

/** Runs statements one after another. */
export interface DedicatedConnection {
  execute<Row extends Record<string, unknown>>(statement: SQL): PromiseLike<Assume<Row, postgres.Row>[]>;
}

/**
 * Opens a connection for some statements only. It connects at the first one. A statement is repeated after a deadlock or a
 * serialization failure. If one misses its deadline, a new connection replaces this one, which may be dead: all later
 * statements would wait behind the late one.
 */
export function createReplaceableConnection(
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
    return { client, queries: drizzle(limitClient(client, deadlines, { onLate: renew, onFailure })) };
  }

  let is_ended = false;
  let current = open();
  const connection: DedicatedConnection = {
    execute: <Row extends Record<string, unknown>>(statement: SQL) =>
      retryConflicts(async () => await current.queries.execute<Row>(statement)),
  };
  const end = (options: { timeout: number }) => {
    is_ended = true;
    return current.client.end(options);
  };
  return { connection, end };
}
