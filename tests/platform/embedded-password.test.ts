import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { statSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connectEmbedded } from '../../src/platform/database/connect.ts';
import { replaceLostPassword, requirePassword } from '../../src/platform/database/embedded-password.ts';
import { rootCodeOf } from '../../src/platform/database/failures.ts';
import { StartError } from '../../src/platform/errors.ts';
import { makePostgresDirectory, type PostgresDirectory, query } from '../support/database/embedded.ts';
import { sharedFiles } from '../support/database/postgres-cluster.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

const WRONG = '28P01';

describe('the embedded PostgreSQL of a service that is not root', () => {
  let postgres_directory: PostgresDirectory;
  beforeAll(async () => {
    postgres_directory = await makePostgresDirectory();
  });
  afterAll(() => postgres_directory[Symbol.asyncDispose]());

  const protect = async (is_root = false) => {
    await using server = await postgres_directory.open();
    return { server, connection: await requirePassword(server, { directory: postgres_directory.directory, is_root }) };
  };

  test('is left as it is as root', async () => {
    await using server = await postgres_directory.open();
    expect(await requirePassword(server, { directory: postgres_directory.directory, is_root: true })).toEqual(
      server.connection,
    );
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('asks for a password, which only its user can read, from the first time on', async () => {
    await using server = await postgres_directory.open();
    const connection = await requirePassword(server, { directory: postgres_directory.directory, is_root: false });
    expect(connection.password).toMatch(/^[\w-]{32}$/);
    expect(statSync(join(postgres_directory.directory, 'pgpass')).mode & 0o777).toBe(0o600);
    expect(await query({ connection }, 'select 1 as one')).toEqual([{ one: 1 }]);
    for (const connection_without_password of [server.connection, { ...connection, password: 'guess' }]) {
      // The server reads its rules again a moment later.
      await waitFor(async () => {
        const refused = await query({ connection: connection_without_password }, 'select 1').catch(
          (error: unknown) => error,
        );
        return rootCodeOf(refused) === WRONG;
      }, 'the refusal');
    }
  });

  test('keeps its password, also for root and if a crash left half of the steps', async () => {
    const before = await readFile(join(postgres_directory.directory, 'pgpass'), 'utf8');
    const { connection } = await protect(true);
    expect(before).toContain(`:${connection.password}\n`);
    // As after a crash before the rules were written.
    writeFileSync(join(postgres_directory.cluster, 'pg_hba.conf'), 'local all all trust\n');
    expect((await protect()).connection).toEqual(connection);
    // As after a crash before the password was written.
    await rm(join(postgres_directory.directory, 'pgpass'));
    writeFileSync(join(postgres_directory.cluster, 'pg_hba.conf'), 'local all all trust\n');
    const changed = await protect();
    expect(changed.connection.password).not.toBe(connection.password);
    await using server = await postgres_directory.open();
    expect(await query({ connection: { ...server.connection, ...changed.connection } }, 'select 1 as one')).toEqual([
      { one: 1 },
    ]);
  });

  test.each(['', '# Muster replaces this file.\nlocal all'])(
    'starts and gets a password if a crash left a part of its rules: %p',
    async (part) => {
      await protect();
      const rules = join(postgres_directory.cluster, 'pg_hba.conf');
      const { uid, gid, mode } = statSync(rules);
      expect(mode & 0o777).toBe(0o600);
      writeFileSync(rules, part);
      await replaceLostPassword(postgres_directory.directory);
      const { connection } = await protect();
      await using server = await postgres_directory.open();
      expect(await query({ connection: { ...server.connection, ...connection } }, 'select 1 as one')).toEqual([
        { one: 1 },
      ]);
      expect(statSync(rules)).toMatchObject({ uid, gid, mode });
    },
  );

  test.each([false, true])(
    'gets another password if the file with it is lost; for root (%p), none',
    async (is_root) => {
      const before = await protect();
      await rm(join(postgres_directory.directory, 'pgpass'));
      await replaceLostPassword(postgres_directory.directory);
      const { connection } = await protect(is_root);
      expect(connection.password).not.toBe(before.connection.password);
      expect(connection.password === undefined).toBe(is_root);
      await using server = await postgres_directory.open();
      expect(await query({ connection: { ...server.connection, ...connection } }, 'select 1 as one')).toEqual([
        { one: 1 },
      ]);
    },
  );

  test('whose password was restored from another time does not start, and says which file to remove', async () => {
    await protect();
    const { directory } = postgres_directory;
    const file = join(directory, 'pgpass');
    writeFileSync(file, '*:*:*:muster:of-another-time\n');
    const options = { directory, programs_directory: await sharedFiles(), is_durable: false, events: { emit() {} } };
    expect((await rejectionOf(StartError, connectEmbedded(options, 2))).message).toBe(
      `The embedded PostgreSQL does not accept the password in ${file}: remove that file, and start Muster again.`,
    );
    await rm(file);
    await (await connectEmbedded(options, 2))[Symbol.asyncDispose]();
  });
});
