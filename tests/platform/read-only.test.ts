import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { openTestDatabase } from '../support/database/database.ts';
import {
  type DatabaseAdmin,
  openDatabaseAdmin,
  outcomeOfWrite,
  type ReadOnlySetting,
} from '../support/database/read-only.ts';
import { waitFor } from '../support/wait.ts';

const POOL = 5;
const SETTINGS: ReadOnlySetting[] = ['database', 'role in database'];
const REFUSED = 'DATABASE_UNAVAILABLE';
/** Without a replacement, a read-only connection is used for half an hour or more. */
const REPLACED_WITHIN_MS = 20_000;

/** Ways to write, each over its own connections. Each returns the outcome of as many writes as it has connections. */
const WRITERS: { name: string; open(database: Database): () => Promise<string[]> }[] = [
  {
    name: 'statements of the pool',
    open:
      ({ queries }) =>
      () =>
        Promise.all(Array.from({ length: POOL }, () => outcomeOfWrite(queries))),
  },
  {
    name: 'transactions',
    open: (database) => () =>
      Promise.all(
        Array.from({ length: POOL }, () =>
          outcomeOfWrite({ execute: (statement) => database.transact((tx) => tx.execute(statement)) as never }),
        ),
      ),
  },
  {
    name: 'a dedicated connection',
    open(database) {
      const connection = database.openDedicatedConnection();
      return async () => [await outcomeOfWrite(connection)];
    },
  },
];

describe('a database that was read-only for a moment', () => {
  let opened: Awaited<ReturnType<typeof openTestDatabase>>;
  let operator: DatabaseAdmin;
  beforeAll(async () => {
    opened = await openTestDatabase();
    operator = await openDatabaseAdmin(opened.address);
    await operator.database.queries.execute(sql`create table notes (note text)`);
  });
  afterAll(async () => {
    await operator[Symbol.asyncDispose]();
    await opened[Symbol.asyncDispose]();
  });

  for (const setting of SETTINGS) {
    for (const { name, open } of WRITERS) {
      test(`${name}: writes succeed again on every connection (set on the ${setting})`, async () => {
        await using database = openDatabase(opened.address, POOL);
        const write = open(database);
        expect(new Set(await write())).toEqual(new Set(['written']));
        await operator.forbidWrites(setting);
        await waitFor(async () => (await write()).every((outcome) => outcome === REFUSED), 'writes to be refused');
        await operator.allowWrites(setting);
        await waitFor(
          async () => (await write()).every((outcome) => outcome === 'written'),
          'writes on every connection',
          REPLACED_WITHIN_MS,
        );
      }, 300_000);
    }
  }
});
