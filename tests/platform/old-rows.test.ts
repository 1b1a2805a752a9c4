import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { asc, eq } from 'drizzle-orm';
import { integer, pgTable, timestamp } from 'drizzle-orm/pg-core';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { deleteOldRows } from '../../src/platform/database/old-rows.ts';
import { openExternalDatabase } from '../support/database/database.ts';

const items = pgTable('items', { number: integer().primaryKey(), expire_ts: timestamp({ withTimezone: true }) });
const minuteOf = (minute: number) => new Date(Date.UTC(2030, 0, 1, 0, minute));

describe('deleteOldRows', () => {
  let external: Awaited<ReturnType<typeof openExternalDatabase>>;
  let database: Database;
  beforeAll(async () => {
    external = await openExternalDatabase();
    database = openDatabase({ url: external.url }, 2);
    await database.queries.execute('create table items (number integer primary key, expire_ts timestamptz)');
  });
  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await external[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await database.queries.execute('truncate items');
    await database.queries
      .insert(items)
      .values([3, 1, 2, 5, 4].map((number) => ({ number, expire_ts: minuteOf(number) })));
    await database.queries.insert(items).values({ number: 0, expire_ts: null });
  });

  const remove = (before: Date, limit = 10) => deleteOldRows(database.queries, items.expire_ts, { before, limit });
  const left = async () =>
    (await database.queries.select().from(items).orderBy(asc(items.number))).map((one) => one.number);

  test('deletes rows from before a given time, and none without a moment', async () => {
    expect(await remove(minuteOf(3))).toBe(2);
    expect(await left()).toEqual([0, 3, 4, 5]);
    expect(await remove(minuteOf(3))).toBe(0);
  });

  test('deletes the oldest rows first, and no more than its limit at a time', async () => {
    expect(await remove(minuteOf(9), 2)).toBe(2);
    expect(await left()).toEqual([0, 3, 4, 5]);
    expect(await remove(minuteOf(9), 2)).toBe(2);
    expect(await remove(minuteOf(9), 2)).toBe(1);
    expect(await left()).toEqual([0]);
  });

  test('skips a row that another transaction makes younger, without waiting for it', async () => {
    await database.transact(async (tx) => {
      await tx
        .update(items)
        .set({ expire_ts: minuteOf(60) })
        .where(eq(items.number, 1));
      expect(await remove(minuteOf(3))).toBe(1);
    });
    expect(await remove(minuteOf(3))).toBe(0);
    expect(await left()).toEqual([0, 1, 3, 4, 5]);
  });
});
