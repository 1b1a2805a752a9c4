import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';

/** A database of its own on a PostgreSQL that is there; undefined where nobody said where one is. */
export async function openServerDatabase(): Promise<({ url: string } & AsyncDisposable) | undefined> {
  const server = process.env.MUSTER_TEST_DATABASE_URL;
  if (server === undefined) {
    console.log('Without a PostgreSQL server: MUSTER_TEST_DATABASE_URL does not say where one is.');
    return undefined;
  }
  const admin = openDatabase({ url: server }, 1);
  const name = `muster_bench_${process.pid}`;
  await admin.queries.execute(sql.raw(`create database ${name}`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      await admin.queries.execute(sql.raw(`drop database if exists ${name} with (force)`));
      await admin[Symbol.asyncDispose]();
    },
  };
}
