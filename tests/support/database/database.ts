import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import { databaseOn, databasePrefix, startKeeper, stopKeeper, TEST_DATABASE_URL, type TestServer } from '../keeper.ts';
import { openTcpProxy, type TcpProxy } from '../network/tcp-proxy.ts';

/** Copies files, instead of writing each page to the log too; on a durable server it would wait for the disk twice. */
const COPIED_AS = TEST_DATABASE_URL === undefined ? 'strategy file_copy' : '';

let shared: Promise<{ server: TestServer; admin: Database }> | undefined;
let count = 0;

/** Opens a new database with all tables, cloned from one that was migrated once. Disposing drops it. */
export async function openTestDatabase(): Promise<{ address: DatabaseAddress } & AsyncDisposable> {
  const { server, admin } = await openShared();
  const name = nextName();
  await admin.queries.execute(sql.raw(`create database ${name} template ${server.template} ${COPIED_AS}`));
  // Commits do not wait for the disk, as on the embedded PostgreSQL of the tests, because many tests share the server.
  await admin.queries.execute(sql.raw(`alter database ${name} set synchronous_commit = off`));
  return {
    address: databaseOn(server.admin, name),
    async [Symbol.asyncDispose]() {
      await admin.queries.execute(sql.raw(`drop database if exists ${name} with (force)`));
    },
  };
}

/** Creates an empty database, with its DATABASE_URL over a proxy that can be cut. */
export async function openExternalDatabase(): Promise<{ url: string; proxy: TcpProxy } & AsyncDisposable> {
  const { server, admin } = await openShared();
  const name = nextName();
  await admin.queries.execute(sql.raw(`create database ${name} template ${server.empty}`));
  const address = databaseOn(server.admin, name);
  const url = new URL('url' in address ? address.url : `postgres://${address.user}@127.0.0.1/${name}`);
  const proxy = await openTcpProxy('url' in address ? { host: url.hostname, port: Number(url.port || 5432) } : address);
  url.host = `127.0.0.1:${proxy.port}`;
  return {
    url: url.href,
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await admin.queries.execute(sql.raw(`drop database if exists ${name} with (force)`));
    },
  };
}

/** Stops the PostgreSQL that the test files share. */
export async function stopTestServer(): Promise<void> {
  if (shared) await (await shared).admin[Symbol.asyncDispose]();
  await stopKeeper();
}

function openShared(): Promise<{ server: TestServer; admin: Database }> {
  shared ??= startKeeper()
    .openServer()
    .then((server) => ({ server, admin: openDatabase(server.admin, 2) }));
  return shared;
}

function nextName(): string {
  count += 1;
  return `${databasePrefix(process.pid)}${count}`;
}
