import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { connectDatabase } from '../../src/platform/database/connect.ts';
import { POSTGRES_USER } from '../../src/platform/database/embedded.ts';
import { describeUnavailability } from '../../src/platform/database/failures.ts';
import { findPostmaster } from '../../src/platform/database/postmaster.ts';
import { ServiceError, StartError } from '../../src/platform/errors.ts';
import { CERTIFICATE, CERTIFICATE_KEY } from '../support/certificates.ts';
import { makePostgresDirectory, type PostgresDirectory, query } from '../support/database/embedded.ts';
import { startPostgres, stateOf } from '../support/machines/standby.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

const UNREADABLE =
  'DATABASE_URL cannot be read: write it as postgres://user:password@host:port/database, with %40 for @ and %2F for / in the password.';

describe('DATABASE_URL is refused in one sentence without its password: it', () => {
  const CASES = [
    { what: 'has a slash in its password', url: 'postgres://user:se/cret@127.0.0.1:5432/things' },
    { what: 'has an invalid port', url: 'postgres://user:secret@127.0.0.1:99999/things' },
    { what: 'has an invalid percent encoding', url: 'postgres://user:secret%zz@127.0.0.1:5432/things' },
    {
      what: 'has a parameter that the driver does not know',
      url: 'postgres://user:secret@127.0.0.1/things?target_session_attrs=secret',
    },
  ];
  for (const { what, url } of CASES) {
    test(what, async () => {
      const refusal = await rejectionOf(StartError, connectDatabase({ url }, 2));
      expect(refusal.message).toBe(UNREADABLE);
      expect(Bun.inspect(refusal)).not.toMatch(/se\/?cret/);
    });
  }
});

describe('describeUnavailability', () => {
  const failureOf = (url: string) => rejectionOf(Error, connectDatabase({ url }, 2));

  test('describes a refused connection and an unknown host name, which may pass', async () => {
    const port = findFreePort();
    const refused = await failureOf(`postgres://user:secret@127.0.0.1:${port}/things`);
    expect(describeUnavailability(refused)).toBe('the database refuses connections (ECONNREFUSED)');
    const unknown = await failureOf('postgres://user:secret@no-such-host.invalid/things');
    expect(describeUnavailability(unknown)).toMatch(/^the database has a host name that cannot be resolved \(E\w+\)$/);
  });

  test('describes a lock that another process holds', () => {
    const cause = Object.assign(new Error('another process holds the lock'), { code: 'LOCK_HELD' });
    const what = describeUnavailability(new ServiceError('DATABASE_BUSY', {}, { cause }));
    expect(what).toBe('the database is being started, migrated, backed up or restored by another process (LOCK_HELD)');
  });

  test('returns undefined for a failure with another cause', () => {
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    for (const failure of [new StartError('wrong', { cause }), new Error('a fault of ours'), new TypeError()]) {
      expect(describeUnavailability(failure)).toBeUndefined();
    }
  });
});

describe('a PostgreSQL over TCP', () => {
  const port = findFreePort();
  let postgres_directory: PostgresDirectory;
  beforeAll(async () => {
    postgres_directory = await makePostgresDirectory();
    const prepared = await postgres_directory.open();
    await query(
      prepared,
      `alter role muster password 'secret'`,
      `create role guest login password 'secret'`,
      'create database closed',
      'revoke connect on database closed from public',
      'create database encrypted',
    );
    await prepared[Symbol.asyncDispose]();
    const sockets = join(postgres_directory.directory, 'sockets');
    mkdirSync(sockets);
    if (process.getuid?.() === 0) chownSync(sockets, POSTGRES_USER.uid, POSTGRES_USER.gid);
    writeAsPostgres('server.crt', CERTIFICATE);
    writeAsPostgres('server.key', CERTIFICATE_KEY);
    writeAsPostgres(
      'pg_hba.conf',
      'hostssl encrypted all all scram-sha-256\nhost postgres,closed,none all all scram-sha-256\n',
    );
    await startPostgres(postgres_directory.cluster, sockets, '-h', '127.0.0.1', '-p', String(port), '-c', 'ssl=on');
    await waitFor(
      async () => (await stateOf(postgres_directory.cluster)) === 'ready',
      'PostgreSQL to accept connections',
    );
  }, 300_000);
  afterAll(() => postgres_directory[Symbol.asyncDispose](), 300_000);

  const writeAsPostgres = (name: string, text: string) => {
    const path = join(postgres_directory.cluster, name);
    writeFileSync(path, text, { mode: 0o600 });
    if (process.getuid?.() === 0) chownSync(path, POSTGRES_USER.uid, POSTGRES_USER.gid);
  };
  const urlOf = (path: string, user = 'muster:secret') => `postgres://${user}@127.0.0.1:${port}/${path}`;
  const refusalOf = async (...url: Parameters<typeof urlOf>) =>
    (await rejectionOf(StartError, connectDatabase({ url: urlOf(...url) }, 2))).message;

  test('is connected to, with TLS if the address asks for it', async () => {
    for (const path of ['postgres', 'postgres?sslmode=prefer', 'encrypted?sslmode=require']) {
      await using database = await connectDatabase({ url: urlOf(path) }, 2);
      expect([...(await database.queries.execute(sql`select 1 as one`))]).toEqual([{ one: 1 }]);
    }
  });

  test('that refuses the connection ends the start with one sentence for the operator', async () => {
    const NOT_LET_IN =
      'PostgreSQL does not let the user of DATABASE_URL connect from this machine: correct the user, change pg_hba.conf, or add ?sslmode=require if it only accepts TLS.';
    const WRONG_USER = 'PostgreSQL refuses the user or the password of DATABASE_URL: correct them.';
    expect(await refusalOf('postgres', 'muster:wrong')).toBe(WRONG_USER);
    expect(await refusalOf('postgres', 'nobody_at_all:secret')).toBe(WRONG_USER);
    expect(await refusalOf('encrypted')).toBe(NOT_LET_IN);
    expect(await refusalOf('template1')).toBe(NOT_LET_IN);
    expect(await refusalOf('none')).toBe(
      'The database that DATABASE_URL names does not exist: create it, or correct the name.',
    );
    expect(await refusalOf('closed', 'guest:secret')).toBe(
      'The user of DATABASE_URL may not connect to its database: grant CONNECT, or correct the user.',
    );
    expect(await refusalOf('encrypted?sslmode=verify-full')).toBe(
      'The certificate of the PostgreSQL at DATABASE_URL is not trusted for that host: install another one, or set sslmode=require, which does not check it.',
    );
  });

  test('without TLS is refused in one sentence if the address asks for TLS', async () => {
    const { pid = 0, socket_directory = '' } = findPostmaster(postgres_directory.cluster) ?? {};
    process.kill(pid, 'SIGINT');
    await waitFor(() => findPostmaster(postgres_directory.cluster) === undefined, 'PostgreSQL to end');
    await startPostgres(postgres_directory.cluster, socket_directory, '-h', '127.0.0.1', '-p', String(port));
    await waitFor(
      async () => (await stateOf(postgres_directory.cluster)) === 'ready',
      'PostgreSQL to accept connections',
    );
    for (const sslmode of ['require', 'verify-full']) {
      expect(await refusalOf(`postgres?sslmode=${sslmode}`)).toBe(
        'DATABASE_URL asks for TLS, which its PostgreSQL does not support: set ssl = on there, or remove sslmode.',
      );
    }
    await using database = await connectDatabase({ url: urlOf('postgres?sslmode=prefer') }, 2);
    expect([...(await database.queries.execute(sql`select 1 as one`))]).toEqual([{ one: 1 }]);
  }, 300_000);
});
