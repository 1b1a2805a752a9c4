import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { connectEmbedded } from '../../src/platform/database/connect.ts';
import { POSTGRES_FILES_VERSION } from '../../src/platform/database/postgres-files.ts';
import { StartError } from '../../src/platform/errors.ts';
import { identifyProcess, signalProcess } from '../../src/platform/system/processes.ts';
import { connectionOf, makePostgresDirectory, type PostgresDirectory, query } from '../support/database/embedded.ts';
import { sharedFiles } from '../support/database/postgres-cluster.ts';
import { findProcessesOf } from '../support/processes.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

const NOTHING = { emit() {} };

/** Returns the message that the operator reads. */
async function startRefusal({ directory }: PostgresDirectory, programs_directory: string): Promise<string> {
  const opening = connectEmbedded({ directory, programs_directory, is_durable: false, events: NOTHING }, 2);
  return (await rejectionOf(StartError, opening)).message;
}

describe('embedded PostgreSQL: what an earlier start left behind', () => {
  let postgres_directory: PostgresDirectory;
  beforeAll(async () => {
    postgres_directory = await makePostgresDirectory();
  });
  afterAll(async () => {
    await postgres_directory[Symbol.asyncDispose]();
  });

  test('an unfinished cluster is created again', async () => {
    const unfinished = `${postgres_directory.cluster}.unfinished`;
    mkdirSync(join(unfinished, 'base'), { recursive: true });
    writeFileSync(join(unfinished, 'PG_VERSION'), '18\n');
    await using server = await postgres_directory.open();
    expect(await query(server, 'create table kept (word text)', 'select * from kept')).toEqual([]);
    expect(readdirSync(postgres_directory.directory).sort()).toEqual(['cluster', 'postgres.log', 'socket']);
  });

  test('a postmaster.pid with the number of another program: that program is left alone, and PostgreSQL starts', async () => {
    // The program runs as PostgreSQL's user, so PostgreSQL would take it for another server on this cluster.
    const owner = statSync(postgres_directory.cluster);
    const other = Bun.spawn(['sleep', '60'], {
      uid: owner.uid,
      gid: owner.gid,
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const lines = [
      other.pid,
      postgres_directory.cluster,
      1,
      5432,
      join(postgres_directory.directory, 'socket'),
      '',
      '1 1',
      'ready   ',
    ];
    writeFileSync(join(postgres_directory.cluster, 'postmaster.pid'), `${lines.join('\n')}\n`);
    writeFileSync(`${connectionOf(postgres_directory).path}.lock`, `${lines.join('\n')}\n`);
    {
      await using server = await postgres_directory.open();
      expect(await query(server, 'select * from kept')).toEqual([]);
    }
    expect(identifyProcess(other.pid)).toMatchObject({ pid: other.pid });
    other.kill('SIGKILL');
    await other.exited;
  });

  test('a program whose PGDATA is the cluster, as in the shell of an operator, is left alone', async () => {
    const { cluster } = postgres_directory;
    const other = Bun.spawn(['sleep', '60'], { env: { PGDATA: cluster }, stdio: ['ignore', 'ignore', 'ignore'] });
    {
      await using server = await postgres_directory.open();
      expect(await query(server, 'select * from kept')).toEqual([]);
    }
    expect(identifyProcess(other.pid)).toMatchObject({ pid: other.pid });
    other.kill('SIGKILL');
    await other.exited;
  });

  test('an unreadable postmaster.pid is ignored', async () => {
    writeFileSync(join(postgres_directory.cluster, 'postmaster.pid'), 'no number\n');
    await using server = await postgres_directory.open();
    expect(await query(server, 'select * from kept')).toEqual([]);
  });

  test('a server that was killed with its service is started again with all committed data', async () => {
    await postgres_directory.openInKilledProcess({ is_durable: true });
    const client = { connection: connectionOf(postgres_directory) };
    await query(client, `insert into kept values ('committed')`);
    for (const pid of findProcessesOf(postgres_directory.directory)) signalProcess(pid, 'SIGKILL');
    await waitFor(() => findProcessesOf(postgres_directory.directory).length === 0, 'all processes to end');
    expect(readdirSync(join(postgres_directory.directory, 'socket')).sort()).toEqual([
      '.s.PGSQL.5432',
      '.s.PGSQL.5432.lock',
    ]);
    expect(readdirSync(postgres_directory.cluster)).toContain('postmaster.pid');
    await using server = await postgres_directory.open();
    expect(await query(server, 'select * from kept')).toEqual([{ word: 'committed' }]);
  });

  test('a server whose socket was removed is replaced', async () => {
    const pid = await postgres_directory.openInKilledProcess();
    rmSync(join(postgres_directory.directory, 'socket/.s.PGSQL.5432'));
    await using server = await postgres_directory.open();
    expect(await query(server, 'select * from kept')).toEqual([{ word: 'committed' }]);
    expect(identifyProcess(pid)).toBeUndefined();
  });

  test('a directory whose path is too long for a socket uses a temporary one, which is removed at the end', async () => {
    const directory = join(postgres_directory.directory, 'a'.repeat(100));
    mkdirSync(directory, { mode: 0o711 });
    renameSync(postgres_directory.cluster, join(directory, 'cluster'));
    const server = await postgres_directory.open({ directory });
    const elsewhere = dirname(server.connection.path);
    expect(elsewhere).toStartWith(join(tmpdir(), 'muster-'));
    expect((statSync(elsewhere).mode & 0o777).toString(8)).toBe('700');
    expect(await query(server, 'select * from kept')).toEqual([{ word: 'committed' }]);
    await server[Symbol.asyncDispose]();
    expect(() => statSync(elsewhere)).toThrow('ENOENT');
  });
});

describe('embedded PostgreSQL: does not start, and says why,', () => {
  let postgres_directory: PostgresDirectory;
  beforeAll(async () => {
    postgres_directory = await makePostgresDirectory();
    mkdirSync(postgres_directory.cluster, { mode: 0o700 });
  });
  afterAll(async () => {
    await postgres_directory[Symbol.asyncDispose]();
  });

  test('on the files of another major version, which it leaves unchanged', async () => {
    writeFileSync(join(postgres_directory.cluster, 'PG_VERSION'), '17\n');
    expect(await startRefusal(postgres_directory, await sharedFiles())).toBe(
      `The database in ${postgres_directory.cluster} was created by PostgreSQL 17, but this Muster contains 18: start the Muster that created it, or set MUSTER_DATA to another directory.`,
    );
    expect(readdirSync(postgres_directory.cluster)).toEqual(['PG_VERSION']);
    expect(readFileSync(join(postgres_directory.cluster, 'PG_VERSION'), 'utf8')).toBe('17\n');
  });

  test('on files that are no cluster, with the last lines of its log', async () => {
    writeFileSync(join(postgres_directory.cluster, 'PG_VERSION'), '18\n');
    const message = await startRefusal(postgres_directory, await sharedFiles());
    expect(message).toStartWith(
      'The embedded PostgreSQL does not run here: correct the problem below, or set DATABASE_URL to your own PostgreSQL.\nthe embedded PostgreSQL did not start:\n',
    );
    expect(message).toContain('postgresql.conf');
  });

  test('if its programs cannot be executed', async () => {
    rmSync(postgres_directory.cluster, { recursive: true });
    const real = await sharedFiles();
    const programs_directory = join(postgres_directory.directory, 'files');
    mkdirSync(join(programs_directory, POSTGRES_FILES_VERSION, 'bin'), { recursive: true });
    symlinkSync(join(real, POSTGRES_FILES_VERSION, 'lib'), join(programs_directory, POSTGRES_FILES_VERSION, 'lib'));
    const initdb = join(programs_directory, POSTGRES_FILES_VERSION, 'bin/initdb');
    writeFileSync(initdb, '#!/bin/sh\necho this machine is too old >&2\nexit 1\n');
    chmodSync(initdb, 0o755);
    const message = await startRefusal(postgres_directory, programs_directory);
    expect(message).toStartWith(
      'The embedded PostgreSQL does not run here: correct the problem below, or set DATABASE_URL',
    );
    expect(message).toContain('initdb failed:\n');
    expect(message).toContain('this machine is too old');
    expect(readdirSync(postgres_directory.directory)).not.toContain('cluster');
  });
});
