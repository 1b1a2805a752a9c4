import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { selectVisible } from '../../../src/features/lobbies/listing-store.ts';
import { takeSeats } from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { isAmong, isInUnlocked, removePlayers, setDisconnected } from '../../../src/features/lobbies/players-store.ts';
import { selectDue } from '../../../src/features/lobbies/upkeep/seat-checks-store.ts';
import { type Database, openDatabase, type Queries } from '../../../src/platform/database/database.ts';
import { openTestDatabase } from '../../support/database/database.ts';

const NOW = new Date();
const ID = crypto.randomUUID();
const SEAT = {
  player_id: ID,
  lobby_id: ID,
  namespace_id: ID,
  kind: 'find',
  address: '',
  client: '',
  players_max: 8,
  request_number: 0,
  ticket: null,
} as const;
const HOW = { reason: 'timed_out', now: NOW } as const;

/** Statements that read seated players, of a client or of a lobby. */
const STATEMENTS: { name: string; run(queries: Queries): Promise<unknown> }[] = [
  ...[true, false].map((has_queue) => ({
    name: `seats of a round with${has_queue ? '' : 'out'} a queue`,
    run: (queries: Queries) => takeSeats(queries, [SEAT], { now: NOW, deadline: NOW }, { has_queue }),
  })),
  { name: 'connected players of lobbies', run: (queries) => selectVisible(queries, [ID]) },
  {
    name: 'seats that are overdue',
    run: (queries) => selectDue(queries, { now: NOW, seated_before: NOW, latest: NOW }),
  },
  { name: 'players who disconnect', run: (queries) => setDisconnected(queries, [ID], NOW) },
  { name: 'players who leave', run: (queries) => removePlayers(queries, ID, isAmong([ID]), HOW) },
  {
    name: 'players who leave lobbies',
    run: (queries) => removePlayers(queries, ID, isInUnlocked([ID], sql`true`), HOW),
  },
];

describe('seat plans: a plan that PostgreSQL made while no player had a seat', () => {
  let opened: Awaited<ReturnType<typeof openTestDatabase>>;
  let database: Database;
  beforeAll(async () => {
    opened = await openTestDatabase();
    // With one connection, for which settings and prepared statements last.
    database = openDatabase(opened.address, 1);
    await database.queries.execute(sql`
      insert into players (player_id, lobby_id, namespace_id, address, client, create_ts, remove_ts)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), number, number, now(), now()
      from generate_series(1, 10000) as number`);
    await database.queries.execute(sql`vacuum analyze players`);
    await database.queries.execute(sql`set plan_cache_mode = force_generic_plan`);
  });
  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await opened[Symbol.asyncDispose]();
  });

  test.each(STATEMENTS)('$name: reads no more seated players than it needs', async ({ run }) => {
    const [text = ''] = await textsOf(run);
    const count = Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
    await database.queries.execute(sql.raw(`prepare planned as ${text}`));
    const nulls = Array(count).fill('null').join();
    const rows = await database.queries.execute<{ 'QUERY PLAN': string }>(
      sql.raw(`explain execute planned (${nulls})`),
    );
    await database.queries.execute(sql.raw('deallocate planned'));
    const lines = rows.map((row) => row['QUERY PLAN']);
    const scans = lines.flatMap((line, index) =>
      /Scan.* on players/.test(line) ? [`${line} ${lines[index + 1]}`] : [],
    );
    expect(scans.length).toBeGreaterThan(0);
    expect(scans.filter((scan) => !/Cond: .*(client_number|lobby_id|player_id)/.test(scan))).toEqual([]);
  });
});

/** Returns the texts of the statements that work runs. */
async function textsOf(work: (queries: Queries) => Promise<unknown>): Promise<string[]> {
  const texts: string[] = [];
  const execute = async (statement: SQL) => {
    texts.push(new PgDialect().sqlToQuery(statement).sql);
    return [];
  };
  await work({ execute } as unknown as Queries);
  return texts;
}
