import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import fc from 'fast-check';
import { openDatabase } from '../../src/platform/database/database.ts';
import { createQuery, createStatement } from '../../src/platform/database/statement.ts';
import { isStorable } from '../../src/platform/http/json.ts';
import { topics } from '../../src/platform/watch/tables.ts';
import { openTestDatabase } from '../support/database/database.ts';

describe('createStatement', () => {
  test('places values and constants, however often a value is used', async () => {
    await using opened = await openTestDatabase();
    await using database = openDatabase(opened.address, 1);
    let written = 0;
    const find = createStatement<{ names: string[]; greeting: string }>((value) => {
      written += 1;
      return sql`
        select ${value('greeting')}::text || ', ' || name || ${'!'}::text as said, ${value('greeting')}::text as greeting
        from unnest(${value('names')}::text[]) as name order by name`;
    });
    const ask = async (greeting: string, names: string[]) => [
      ...(await database.queries.execute(find({ names, greeting }))),
    ];
    expect(await ask('Hello', ['Bo', 'Al'])).toEqual([
      { said: 'Hello, Al!', greeting: 'Hello' },
      { said: 'Hello, Bo!', greeting: 'Hello' },
    ]);
    expect(await ask("$1 '", ['$2'])).toEqual([{ said: "$1 ', $2!", greeting: "$1 '" }]);
    expect(await ask('', [])).toEqual([]);
    expect(written).toBe(1);
  });

  test('leaves text alone that looks like a parameter', async () => {
    await using opened = await openTestDatabase();
    await using database = openDatabase(opened.address, 1);
    const ask = createStatement<{ name: string }>((value) => sql`select '$1' as text, ${value('name')}::text as name`);
    expect([...(await database.queries.execute(ask({ name: 'Al' })))]).toEqual([{ text: '$1', name: 'Al' }]);
  });

  test('passes lists unchanged, whatever their items', async () => {
    await using opened = await openTestDatabase();
    await using database = openDatabase(opened.address, 1);
    const ask = createStatement<{ texts: (string | null)[]; numbers: (number | null)[] }>(
      (value) =>
        sql`select to_json(${value('texts')}::text[]) as texts, to_json(${value('numbers')}::int[]) as numbers`,
    );
    const anyText = fc.oneof(
      fc.string({ unit: 'binary' }).filter(isStorable),
      fc.stringMatching(/^[\\"{},\s]*$/),
      fc.constantFrom('null', 'NULL', '', 'ü€😀', '\u2028', '\u007f', '\n\t\b'),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.option(anyText)),
        fc.array(fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))),
        async (texts, numbers) => {
          expect([...(await database.queries.execute(ask({ texts, numbers })))]).toEqual([{ texts, numbers }]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

test('createQuery: is built once; each run has its own values and sees its own transaction', async () => {
  await using opened = await openTestDatabase();
  await using database = openDatabase(opened.address, 2);
  let built = 0;
  const find = createQuery<{ topic: string }, { topic: string; version: number }[]>((queries, value) => {
    built += 1;
    return queries
      .select()
      .from(topics)
      .where(eq(topics.topic, value('topic')));
  });
  await database.queries.insert(topics).values([
    { topic: 'one', version: 1 },
    { topic: 'two', version: 2 },
  ]);
  expect(await find(database.queries, { topic: 'one' })).toEqual([{ topic: 'one', version: 1 }]);
  expect(await find(database.queries, { topic: 'two' })).toEqual([{ topic: 'two', version: 2 }]);
  expect(await find(database.queries, { topic: "'" })).toEqual([]);
  expect(built).toBe(1);
  await database.transact(async (tx) => {
    await tx.insert(topics).values({ topic: 'three', version: 3 });
    expect(await find(tx, { topic: 'three' })).toEqual([{ topic: 'three', version: 3 }]);
    expect(await find(database.queries, { topic: 'three' })).toEqual([]);
  });
});
