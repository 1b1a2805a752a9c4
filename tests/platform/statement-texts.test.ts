import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { selectIdentities } from '../../src/features/identities/store.ts';
import { selectLobbies } from '../../src/features/lobbies/matchmaking/lobby-cache/lobby-cache-store.ts';
import { selectQueuePositions } from '../../src/features/lobbies/matchmaking/queue/queue-store.ts';
import { insertReceipts } from '../../src/features/lobbies/matchmaking/receipts/receipts-store.ts';
import { selectUsage } from '../../src/features/servers/usage/usage-store.ts';
import { type Database, openDatabase, type Queries } from '../../src/platform/database/database.ts';
import { readVersions, touch } from '../../src/platform/watch/versions.ts';
import { openTestDatabase } from '../support/database/database.ts';

const uuids = (count: number) => Array.from({ length: count }, () => crypto.randomUUID());
const NOW = new Date();
const WINDOW = { start: NOW, end: NOW };

/** Queries with a list, each run with as many values as asked. */
const QUERIES: { name: string; run(queries: Queries, count: number): Promise<unknown> }[] = [
  { name: 'identities by their ids', run: (queries, count) => selectIdentities(queries, uuids(count)) },
  { name: 'lobbies by their ids', run: (queries, count) => selectLobbies(queries, uuids(count)) },
  { name: 'usage of games', run: (queries, count) => selectUsage(queries, uuids(count), WINDOW) },
  {
    name: 'queue positions',
    run: (queries, count) =>
      selectQueuePositions(
        queries,
        uuids(count).map((ticket) => ({ ticket, namespace_id: crypto.randomUUID() })),
      ),
  },
  {
    name: 'new receipts',
    run: (queries, count) =>
      insertReceipts(
        queries,
        uuids(count).map((ray_id) => ({ ray_id, namespace_id: crypto.randomUUID(), create_ts: NOW, receipt: {} })),
      ),
  },
  { name: 'versions of topics', run: (queries, count) => readVersions(queries, uuids(count)) },
  { name: 'a few changed topics', run: (queries, count) => touch(queries, uuids(count)) },
  { name: 'changed topics that share notifications', run: (queries, count) => touch(queries, uuids(8 * count)) },
];

describe('a query with a list is one statement, however long the list is:', () => {
  let opened: Awaited<ReturnType<typeof openTestDatabase>>;
  let database: Database;
  beforeAll(async () => {
    opened = await openTestDatabase();
    // With one connection, which keeps all prepared statements.
    database = openDatabase(opened.address, 1);
  });
  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await opened[Symbol.asyncDispose]();
  });

  async function countStatements(): Promise<number> {
    const [row] = await database.queries.execute<{ count: number }>(
      sql`select count(*)::int as count from pg_prepared_statements`,
    );
    return row?.count ?? 0;
  }

  for (const { name, run } of QUERIES) {
    test(name, async () => {
      await run(database.queries, 1);
      const before = await countStatements();
      for (const count of [2, 3, 5, 7]) await run(database.queries, count);
      expect(await countStatements()).toBe(before);
    });
  }
});
