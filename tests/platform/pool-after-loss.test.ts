import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { waitFor } from '../support/wait.ts';

const POOL = 10;

describe('when connections to PostgreSQL are lost', () => {
  let external: Awaited<ReturnType<typeof openExternalDatabase>>;
  beforeAll(async () => {
    external = await openExternalDatabase();
  }, 300_000);
  afterAll(async () => {
    await external[Symbol.asyncDispose]();
  });

  test('a transaction on one of them writes nothing more, also not in the next transaction on its replacement', async () => {
    // With one connection, the next transaction uses that of the one before.
    await using database = openDatabase({ url: external.url }, 1);
    await database.queries.execute(sql`create table numbers (number int)`);
    const has_begun = Promise.withResolvers<void>();
    const goes_on = Promise.withResolvers<void>();
    const has_ended = Promise.withResolvers<void>();
    const lost = database.transact(async (tx) => {
      await tx.execute(sql`select 1`);
      has_begun.resolve();
      await goes_on.promise;
      await tx.execute(sql`insert into numbers values (1)`).catch(() => {});
      has_ended.resolve();
    });
    const outcome = lost.then(
      () => 'committed',
      () => 'failed',
    );
    await has_begun.promise;
    await external.proxy.cut();
    await external.proxy.heal();
    const next = database.transact(async (tx) => {
      await tx.execute(sql`insert into numbers values (2)`);
      goes_on.resolve();
      await has_ended.promise;
      // By then everything that the lost transaction sends has been sent.
      for (let times = 0; times < 3; times += 1) await tx.execute(sql`select 1`);
      throw new Error('taken back');
    });
    await expect(next).rejects.toThrow('taken back');
    expect(await outcome).toBe('failed');
    const rows = await database.queries.execute(sql`select number from numbers`);
    expect(rows.map(({ number }) => number)).toEqual([]);
  }, 300_000);

  test('each is replaced as soon as the server is back', async () => {
    await using database = openDatabase({ url: external.url }, POOL);
    const causes = new Set<string>();
    let is_back = false;
    let answered = 0;
    // Writes go on all the time, also in the moment of the loss.
    const querying = Array.from({ length: POOL }, async () => {
      for (let last = false; !last; ) {
        last = is_back;
        const cause = await readOne(database);
        if (cause === undefined) answered += 1;
        else causes.add(cause);
        await Bun.sleep(1);
      }
    });
    await waitFor(() => answered > 10 * POOL, 'queries to be answered');
    await external.proxy.cut();
    await waitFor(() => causes.size > 0, 'the loss to be noticed');
    await external.proxy.heal();
    await waitFor(async () => (await readOne(database)) === undefined, 'the server to be back');
    is_back = true;
    await Promise.all(querying);
    expect([...causes]).not.toContain('CONNECT_TIMEOUT');
    expect(await Promise.all(Array.from({ length: 2 * POOL }, () => readOne(database)))).toEqual(
      Array.from({ length: 2 * POOL }, () => undefined),
    );
  }, 300_000);
});

/** Returns the code of a failed query; undefined if it succeeds. */
async function readOne({ queries }: Database): Promise<string | undefined> {
  return await queries.execute(sql`select 1`).then(() => undefined, codeOf);
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return codeOf(error.cause);
  return 'code' in error ? String(error.code) : error.message;
}
