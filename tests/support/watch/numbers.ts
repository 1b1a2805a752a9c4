import { sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../../src/platform/database/database.ts';
import { touch } from '../../../src/platform/watch/versions.ts';

/** Creates the table of the numbers that suites watch, each with a name. */
export async function createNumbers(queries: Queries): Promise<void> {
  await queries.execute(sql`create table if not exists numbers (name text primary key, number int not null)`);
}

/** Returns a number; 0 if it was never increased. */
export async function readNumber(queries: Queries, name: string): Promise<number> {
  const [row] = await queries.execute<{ number: number }>(sql`select number from numbers where name = ${name}`);
  return row?.number ?? 0;
}

/** Increases a number, and bumps its version. */
export async function increaseNumber(tx: Tx, name: string, by = 1): Promise<void> {
  await touch(tx, [`number:${name}`]);
  await tx.execute(sql`
    insert into numbers values (${name}, ${by}) on conflict (name) do update set number = numbers.number + ${by}`);
}
