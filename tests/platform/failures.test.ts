import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../src/platform/database/database.ts';
import { isTaken, isWorthRetrying, toServiceError } from '../../src/platform/database/failures.ts';
import { type ErrorCode, ServiceError } from '../../src/platform/errors.ts';
import { errorResponse, toCallersError } from '../../src/platform/http/answers.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { findFreePort } from '../support/network/test-ports.ts';

let opened: AsyncDisposable;
let database: Database;
beforeAll(async () => {
  const own = await openTestDatabase();
  opened = own;
  database = openDatabase(own.address, 2);
  await database.queries.execute(sql`create table things (name text constraint things_name primary key)`);
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await opened[Symbol.asyncDispose]();
});

const failureOf = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => undefined,
    (error: unknown) => error,
  );

/** Makes PostgreSQL itself raise this error. */
const raise = (sqlstate: string) =>
  failureOf(
    database.queries.execute(sql.raw(`do $$ begin raise exception 'a secret' using errcode = '${sqlstate}'; end $$`)),
  );

describe('database failures: the caller gets', () => {
  const CODES: { sqlstate: string; what: string; code: ErrorCode | undefined }[] = [
    { sqlstate: '08006', what: 'a lost connection', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '53100', what: 'a full disk', code: 'STORAGE_FULL' },
    { sqlstate: '53200', what: 'no memory left', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '53300', what: 'too many connections', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '57P01', what: 'a shutdown', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '57P02', what: 'a crash', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '57P03', what: 'a start that has not ended', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '25006', what: 'a read-only server', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '58030', what: 'a disk that fails', code: 'DATABASE_UNAVAILABLE' },
    { sqlstate: '57014', what: 'a statement that took too long', code: 'DATABASE_BUSY' },
    { sqlstate: '55P03', what: 'a lock that was not available', code: 'DATABASE_BUSY' },
    { sqlstate: '25P03', what: 'a transaction that was idle too long', code: 'DATABASE_BUSY' },
    { sqlstate: '40001', what: 'a serialization failure', code: 'DATABASE_BUSY' },
    { sqlstate: '40P01', what: 'a deadlock', code: 'DATABASE_BUSY' },
    { sqlstate: '23505', what: 'a duplicate key', code: undefined },
    { sqlstate: '42P01', what: 'a missing table', code: undefined },
    { sqlstate: '22P02', what: 'an invalid value', code: undefined },
  ];
  for (const { sqlstate, what, code } of CODES) {
    test(`${code ?? 'ERROR'}: ${what} (${sqlstate})`, async () => {
      const failure = await raise(sqlstate);
      expect(toServiceError(failure)?.code).toBe(code);
      const { status, retry_after_ms } = toCallersError(failure);
      const is_full = code === 'STORAGE_FULL';
      expect({ status, retry_after_ms }).toEqual(
        code === undefined
          ? { status: 500, retry_after_ms: undefined }
          : { status: 503, retry_after_ms: is_full ? 30_000 : 1_000 },
      );
      expect(isWorthRetrying(failure)).toBe(sqlstate.startsWith('40'));
    });
  }

  const UNREACHABLE: { what: string; address: DatabaseAddress }[] = [
    {
      what: 'a port without a listener',
      address: { url: `postgres://someone@127.0.0.1:${findFreePort()}/things` },
    },
    {
      what: 'a socket that does not exist',
      address: { path: '/nowhere/.s.PGSQL.5432', user: 'someone', database: 'things' },
    },
  ];
  for (const { what, address } of UNREACHABLE) {
    test(`DATABASE_UNAVAILABLE: ${what}, for a query and for a transaction`, async () => {
      await using unreachable = openDatabase(address, 1);
      const failures = [
        await failureOf(unreachable.queries.execute(sql`select 1`)),
        await failureOf(unreachable.transact((tx) => tx.execute(sql`select 1`))),
      ];
      expect(failures.map((failure) => toServiceError(failure)?.code)).toEqual(Array(2).fill('DATABASE_UNAVAILABLE'));
    });
  }

  const NOT_THE_DATABASE: { what: string; work(): Promise<unknown> }[] = [
    { what: 'a file that does not exist', work: () => readFile('/nowhere/file') },
    {
      what: "a refused connection of the service's own request",
      work: () => fetch(`http://127.0.0.1:${findFreePort()}/`),
    },
    { what: 'a rejection that is no Error', work: async () => Promise.reject('a word') },
  ];
  for (const { what, work } of NOT_THE_DATABASE) {
    test(`ERROR: ${what}`, async () => {
      const failure = await failureOf(work());
      expect(toServiceError(failure)).toBeUndefined();
      expect(toCallersError(failure)).toMatchObject({ code: 'ERROR', status: 500 });
    });
  }

  test('the ServiceError that a transaction threw, also if another error wraps it', async () => {
    const refusal = new ServiceError('VERSION_NOT_FOUND', {});
    const failure = await failureOf(
      database.transact(() => Promise.reject(new Error('while deploying', { cause: refusal }))),
    );
    expect(toServiceError(failure)).toBe(refusal);
  });
});

test('database failures: no part of the statement, its parameters or the server is in the body of an error', async () => {
  const FAILURES = [
    await failureOf(database.queries.execute(sql`insert into no_table (secret) values (${'parameter'})`)),
    await failureOf(database.transact((tx) => tx.execute(sql`select ${'parameter'}::int`))),
    await raise('57014'),
    await raise('53100'),
  ];
  const bodies = await Promise.all(
    FAILURES.map((failure) =>
      errorResponse(toCallersError(failure), { ray_id: 'ray', public_url: 'http://muster' }).json(),
    ),
  );
  const bodyOf = (code: string, message: string, anchor: string) => ({
    code,
    message,
    ray_id: 'ray',
    documentation: `http://muster/docs/errors#${anchor}`,
  });
  const busy = bodyOf('DATABASE_BUSY', 'The database is too busy to answer in time. Try again.', 'database-busy');
  const full = bodyOf(
    'STORAGE_FULL',
    "The service's disk is full. Try again after its operator has freed space.",
    'storage-full',
  );
  expect(bodies.slice(2)).toEqual([busy, full]);
  for (const body of bodies.slice(0, 2)) {
    expect(Object.keys(body)).toEqual(['code', 'message', 'ray_id', 'documentation']);
    expect(body.code).toBe('ERROR');
    expect(JSON.stringify(body)).not.toMatch(/insert|select|no_table|secret|parameter|relation|syntax/);
  }
});

test('isTaken: recognizes a duplicate key by the name of its constraint', async () => {
  const insert = () => database.queries.execute(sql`insert into things values ('one')`);
  await insert();
  const failure = await failureOf(insert());
  expect(isTaken(failure, 'things_name')).toBe(true);
  expect(isTaken(failure, 'things_other')).toBe(false);
  expect(isTaken(await raise('23502'), 'things_name')).toBe(false);
});
