import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../src/platform/database/database.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { MACHINE_TMP, startKeeper, stopKeeper } from './keeper.ts';
import { openTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** A PostgreSQL server to make databases on. */
interface TestServer {
  addressOf(database: string): DatabaseAddress | Promise<DatabaseAddress>;
}

/** CI sets it to run on a server instead of the embedded PostgreSQL. */
export const TEST_DATABASE_URL = process.env.MUSTER_TEST_DATABASE_URL;
const TEMPLATE = `muster_template_${process.pid}`;
/** Copies files, instead of writing each page to the log too; on a durable server it would wait for the disk twice. */
const COPIED_AS = TEST_DATABASE_URL === undefined ? 'strategy file_copy' : '';

let shared: Promise<{ server: TestServer; admin: Database }> | undefined;
let count = 0;

/** Opens a new database with all tables, cloned from one that was migrated once. Disposing drops it. */
export async function openTestDatabase(): Promise<{ address: DatabaseAddress } & AsyncDisposable> {
  shared ??= openShared();
  const { server, admin } = await shared;
  count += 1;
  const name = `muster_test_${process.pid}_${count}`;
  await admin.queries.execute(sql.raw(`create database ${name} template ${TEMPLATE} ${COPIED_AS}`));
  // Commits do not wait for the disk, as on the embedded PostgreSQL of the tests, because many tests share the server.
  await admin.queries.execute(sql.raw(`alter database ${name} set synchronous_commit = off`));
  return {
    address: await server.addressOf(name),
    async [Symbol.asyncDispose]() {
      await admin.queries.execute(sql.raw(`drop database if exists ${name} with (force)`));
    },
  };
}

/** Creates an empty database, with its DATABASE_URL over a proxy that can be cut. */
export async function openExternalDatabase(): Promise<{ url: string; proxy: TcpProxy } & AsyncDisposable> {
  shared ??= openShared();
  const { server, admin } = await shared;
  const name = `muster_journey_${crypto.randomUUID().replaceAll('-', '')}`;
  await admin.queries.execute(sql.raw(`create database ${name}`));
  const address = await server.addressOf(name);
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
  if (shared) {
    const { admin } = await shared;
    await admin.queries.execute(sql.raw(`drop database if exists ${TEMPLATE} with (force)`));
    await admin[Symbol.asyncDispose]();
  }
  await stopKeeper();
}

async function openShared() {
  const server: TestServer = TEST_DATABASE_URL === undefined ? startKeeper() : openExternal(TEST_DATABASE_URL);
  const admin = openDatabase(await server.addressOf('postgres'), 2);
  await admin.queries.execute(sql.raw(`create database ${TEMPLATE}`));
  const template = openDatabase(await server.addressOf(TEMPLATE), 2);
  await migrateDatabase(template);
  await template[Symbol.asyncDispose]();
  return { server, admin };
}

function openExternal(url: string): TestServer {
  return {
    addressOf(database) {
      const address = new URL(url);
      address.pathname = `/${database}`;
      return { url: address.href };
    },
  };
}

/** The directory in which runs share the unpacked programs of PostgreSQL; other users must be able to enter it. */
export async function sharedFiles(machine_tmp = MACHINE_TMP): Promise<string> {
  const directory = join(machine_tmp, `muster-tests-files-${process.getuid?.() ?? 0}`);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  return directory;
}
