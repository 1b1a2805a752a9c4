import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { takeSeats } from '../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { openTestDatabase } from '../support/database/database.ts';

test('dedicated connection: PostgreSQL uses one plan for every run of a statement, also for lists of one item', async () => {
  await using opened = await openTestDatabase();
  await using database = openDatabase(opened.address, 1);
  const connection = database.openDedicatedConnection();
  const ID = crypto.randomUUID();
  const seat = { player_id: ID, lobby_id: ID, namespace_id: ID, kind: 'find', ticket: null } as const;
  const moments = { now: new Date(), deadline: new Date() };
  for (let round = 0; round < 10; round += 1) {
    await takeSeats(connection, [{ ...seat, address: '', client: '', players_max: 8, request_number: 0 }], moments);
  }
  const plans = await connection.execute(sql`
    select generic_plans::int, custom_plans::int from pg_prepared_statements where statement like '%proposed%'
      and statement not like '%pg_prepared_statements%'`);
  expect([...plans]).toEqual([{ generic_plans: 10, custom_plans: 0 }]);
});

test('dedicated connection: a statement that PostgreSQL ends because of a deadlock is repeated', async () => {
  await using opened = await openTestDatabase();
  await using database = openDatabase(opened.address, 1);
  await database.queries.execute(sql`create sequence attempts`);
  // A sequence keeps its value when the statement is undone.
  await database.queries.execute(sql`
    create function succeed_at_second() returns bigint language plpgsql as $$
      declare attempt bigint := nextval('attempts');
      begin
        if attempt = 1 then raise exception 'deadlock detected' using errcode = 'deadlock_detected'; end if;
        return attempt;
      end $$`);
  const connection = database.openDedicatedConnection();
  const rows = await connection.execute(sql`select succeed_at_second()::int as attempt`);
  expect([...rows]).toEqual([{ attempt: 2 }]);
});
