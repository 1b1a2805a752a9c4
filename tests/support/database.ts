import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../src/platform/database/database.ts';
import { openEmbeddedPostgres } from '../../src/platform/database/embedded.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { openTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** A PostgreSQL server to make databases on. */
interface TestServer extends AsyncDisposable {
  addressOf(database: string): DatabaseAddress;
}

/** Set, by CI, to run on a server instead of the embedded PostgreSQL. */
export const TEST_DATABASE_URL = process.env.MUSTER_TEST_DATABASE_URL;
const TEMPLATE = `muster_template_${process.pid}`;

let shared: Promise<{ server: TestServer; admin: Database }> | undefined;
let count = 0;

/** A database of my own with all tables, cloned from one that was migrated once. Dropped when disposed of. */
export async function openTestDatabase(): Promise<{ address: DatabaseAddress } & AsyncDisposable> {
  shared ??= openShared();
  const { server, admin } = await shared;
  count += 1;
  const name = `muster_test_${process.pid}_${count}`;
  await admin.queries.execute(sql.raw(`create database ${name} template ${TEMPLATE}`));
  // As little waits for the disk as on the embedded one of the tests: many of them share it.
  await admin.queries.execute(sql.raw(`alter database ${name} set synchronous_commit = off`));
  return {
    address: server.addressOf(name),
    async [Symbol.asyncDispose]() {
      await admin.queries.execute(sql.raw(`drop database if exists ${name} with (force)`));
    },
  };
}

/** An empty database of my own as programs are given it by DATABASE_URL; the way to it can be cut. */
export async function openExternalDatabase(): Promise<{ url: string; proxy: TcpProxy } & AsyncDisposable> {
  shared ??= openShared();
  const { server, admin } = await shared;
  const name = `muster_journey_${crypto.randomUUID().replaceAll('-', '')}`;
  await admin.queries.execute(sql.raw(`create database ${name}`));
  const address = server.addressOf(name);
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

/** Stops what the test files share. */
export async function stopTestServer(): Promise<void> {
  if (!shared) return;
  const { server, admin } = await shared;
  await admin.queries.execute(sql.raw(`drop database if exists ${TEMPLATE} with (force)`));
  await admin[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
}

async function openShared() {
  const server = TEST_DATABASE_URL === undefined ? await openEmbedded() : openExternal(TEST_DATABASE_URL);
  const admin = openDatabase(server.addressOf('postgres'), 2);
  await admin.queries.execute(sql.raw(`create database ${TEMPLATE}`));
  const template = openDatabase(server.addressOf(TEMPLATE), 2);
  await migrateDatabase(template);
  await template[Symbol.asyncDispose]();
  return { server, admin };
}

async function openEmbedded(): Promise<TestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-tests-'));
  await chmod(directory, 0o711);
  const server = await openEmbeddedPostgres({
    directory,
    files_directory: await sharedFiles(),
    is_durable: false,
    events: { emit() {} },
  });
  return {
    addressOf: (database) => ({ ...server.connection, database }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function openExternal(url: string): TestServer {
  return {
    addressOf(database) {
      const address = new URL(url);
      address.pathname = `/${database}`;
      return { url: address.href };
    },
    async [Symbol.asyncDispose]() {},
  };
}

/** Where runs on this machine share the unpacked programs of PostgreSQL; other users must be able to enter it. */
export async function sharedFiles(): Promise<string> {
  const directory = join(tmpdir(), `muster-tests-files-${process.getuid?.() ?? 0}`);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  return directory;
}
