import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { POSTGRES_USER } from '../../src/platform/database/embedded.ts';
import { sessionOf } from '../../src/platform/system/processes.ts';
import { connectionOf, makePostgresDirectory, type PostgresDirectory, query } from '../support/database/embedded.ts';
import { findProcessesOf } from '../support/processes.ts';
import { waitFor } from '../support/wait.ts';

const IS_ROOT = process.getuid?.() === 0;
const EMBEDDED = join(import.meta.dir, '../../src/platform/database/embedded.ts');

/** Returns the pid in `postmaster.pid`. */
const postmasterOf = ({ cluster }: PostgresDirectory): number =>
  Number(readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0]);

describe('the embedded PostgreSQL', () => {
  let postgres_directory: PostgresDirectory;
  beforeAll(async () => {
    postgres_directory = await makePostgresDirectory();
  });
  afterAll(async () => {
    await postgres_directory[Symbol.asyncDispose]();
  });

  test('starts in an empty directory, keeps what is written, and leaves nothing running', async () => {
    const first = await postgres_directory.open();
    await query(first, 'create table kept (word text)', `insert into kept values ('muster')`);
    await first[Symbol.asyncDispose]();
    // A last worker may end a moment after its postmaster.
    await waitFor(() => findProcessesOf(postgres_directory.directory).length === 0, 'all processes to end');

    const second = await postgres_directory.open();
    expect(second.connection).toEqual(first.connection);
    expect(await query(second, 'select word from kept')).toEqual([{ word: 'muster' }]);
    await second[Symbol.asyncDispose]();
    await waitFor(() => findProcessesOf(postgres_directory.directory).length === 0, 'all processes to end');
  });

  test('is accessible to its owner only: its files, its socket, its log', async () => {
    await using server = await postgres_directory.open();
    const { path, ...user } = server.connection;
    expect(path).toBe(join(postgres_directory.directory, 'socket/.s.PGSQL.5432'));
    expect(user).toEqual({ user: 'muster', database: 'postgres' });
    const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);
    expect(
      [postgres_directory.cluster, dirname(path), join(postgres_directory.directory, 'postgres.log')].map(modeOf),
    ).toEqual(['700', '700', '600']);
    expect(await query(server, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
  });

  test.skipIf(!IS_ROOT)('is found by root without CAP_SYS_PTRACE, as in a container', async () => {
    await using server = await postgres_directory.open();
    const script = `import { findEmbeddedPostgres } from ${JSON.stringify(EMBEDDED)};
      console.log(findEmbeddedPostgres(${JSON.stringify(postgres_directory.directory)})?.path);`;
    const found = await Bun.$`setpriv --bounding-set -sys_ptrace ${process.execPath} -e ${script}`.text();
    expect(found.trim()).toBe(server.connection.path);
  });

  test('keeps its log from growing forever: its beginning moves to another file, which only the owner can read', async () => {
    await using server = await postgres_directory.open({ log_bytes_max: 2_000 });
    const log = join(postgres_directory.directory, 'postgres.log');
    const fail = () => query(server, `select '${'x'.repeat(1_000)}' from missing`).catch(() => {});
    const hasMoved = () =>
      existsSync(`${log}.1`) && readFileSync(`${log}.1`, 'utf8').includes('relation "missing" does not exist');
    await waitFor(async () => {
      await fail();
      return hasMoved() && statSync(log).size < statSync(`${log}.1`).size;
    }, 'the log to be emptied');
    expect((statSync(`${log}.1`).mode & 0o777).toString(8)).toBe('600');
    await fail();
    // Written at the beginning of the file, which has no gap of zeros.
    expect(readFileSync(log, 'utf8')).toMatch(/^2\d{3}-/);
  });

  test('runs in a session of its own, and as another user if the service is root', async () => {
    await using _ = await postgres_directory.open();
    const pid = postmasterOf(postgres_directory);
    expect(sessionOf(pid)).toBe(pid);
    const uid = IS_ROOT ? POSTGRES_USER.uid : process.getuid?.();
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toContain(`\nUid:\t${uid}\t${uid}\t${uid}\t${uid}\n`);
    expect(statSync(postgres_directory.cluster).uid).toBe(uid ?? -1);
    // The service's environment, which may hold secrets, is not passed on.
    const names = readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .map((entry) => entry.split('=')[0]);
    expect(names.sort()).toEqual(['', 'LC_ALL', 'LD_LIBRARY_PATH', 'MUSTER_POSTGRES_CLUSTER', 'PATH']);
  });

  const DURABILITY = [
    { is_durable: true, fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' },
    { is_durable: false, fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' },
  ];
  for (const { is_durable, ...wanted } of DURABILITY) {
    test(`${is_durable ? 'waits for the disk' : 'does not wait for the disk, for tests,'} if it is opened so`, async () => {
      await using server = await postgres_directory.open({ is_durable });
      const rows = await query(
        server,
        `select name, setting from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit')`,
      );
      expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual(wanted);
    });
  }

  test('has small files of its log, because commits wait while one is created', async () => {
    await using server = await postgres_directory.open({ is_durable: true });
    expect(await query(server, 'show wal_segment_size')).toEqual([{ wal_segment_size: '4MB' }]);
  });

  test('is found again when the process that opened it was killed', async () => {
    const pid = await postgres_directory.openInKilledProcess();
    const server = await postgres_directory.open();
    expect(postmasterOf(postgres_directory)).toBe(pid);
    expect(await query(server, 'select word from kept')).toEqual([{ word: 'muster' }]);
    await server[Symbol.asyncDispose]();
    await waitFor(() => findProcessesOf(postgres_directory.directory).length === 0, 'all processes to end');
  });

  test('is awaited while it stops, and then started again', async () => {
    const pid = await postgres_directory.openInKilledProcess();
    const client = { connection: connectionOf(postgres_directory) };
    const held = query(
      client,
      'create table last_word (word text)',
      'select pg_sleep(0.3)',
      `insert into last_word values ('bye')`,
    );
    await waitFor(async () => {
      const rows = await query(
        client,
        `select 1 from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`,
      );
      return rows.length > 0;
    }, 'the client to run its statement');
    // A smart shutdown ends when the last client has disconnected.
    process.kill(pid, 'SIGTERM');
    await waitFor(
      () => readFileSync(join(postgres_directory.cluster, 'postmaster.pid'), 'utf8').includes('stopping'),
      'PostgreSQL to begin to stop',
    );
    await using server = await postgres_directory.open();
    await held;
    expect(postmasterOf(postgres_directory)).not.toBe(pid);
    expect(await query(server, 'select word from last_word')).toEqual([{ word: 'bye' }]);
  });

  test('is restarted after a kill, and its users continue', async () => {
    await using server = await postgres_directory.open();
    const pid = postmasterOf(postgres_directory);
    postgres_directory.events.length = 0;
    process.kill(pid, 'SIGKILL');
    const rows = await waitFor(
      () => query(server, 'select word from kept').catch(() => undefined),
      'queries to be answered again',
    );
    expect(rows).toEqual([{ word: 'muster' }]);
    expect(postmasterOf(postgres_directory)).not.toBe(pid);
    expect(postgres_directory.events.filter(({ event }) => event === 'database_lost')).toHaveLength(1);
    // Its end was notified: no check found it.
    expect(postgres_directory.events.filter(({ event }) => event === 'loop_corrected')).toEqual([]);
  });
});
