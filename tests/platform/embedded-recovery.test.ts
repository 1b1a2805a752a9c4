import { afterAll, beforeAll, expect, test } from 'bun:test';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePostgresDirectory, type PostgresDirectory, query } from '../support/database/embedded.ts';
import { waitFor } from '../support/wait.ts';

let postgres_directory: PostgresDirectory;
beforeAll(async () => {
  postgres_directory = await makePostgresDirectory();
  await using server = await postgres_directory.open();
  await query(server, 'create table kept (word text)', `insert into kept values ('muster')`);
}, 300_000);
afterAll(() => postgres_directory[Symbol.asyncDispose]());

const statusOf = () => readFileSync(join(postgres_directory.cluster, 'postmaster.pid'), 'utf8').split('\n');

test('embedded PostgreSQL: a start waits for as long as recovery takes, and reports it', async () => {
  // Recovery goes on for as long as this file exists.
  const hold = join(postgres_directory.directory, 'hold');
  writeFileSync(hold, '');
  appendFileSync(
    join(postgres_directory.cluster, 'postgresql.auto.conf'),
    `restore_command = 'while [ -e ${hold} ]; do sleep 0.02; done; false'\n`,
  );
  writeFileSync(join(postgres_directory.cluster, 'recovery.signal'), '');
  postgres_directory.events.length = 0;
  const opening = postgres_directory.open({ starts_within_ms: 4_000, progress_every_ms: 500 });
  const recovering = () => postgres_directory.events.filter(({ event }) => event === 'database_recovering');
  // Nine reports take longer than a start without recovery may.
  await Promise.race([opening, waitFor(() => recovering().length >= 9, 'reports of the recovery')]);
  expect(recovering()[0]).toMatchObject({ for_ms: expect.any(Number), last_line: expect.any(String) });
  const [pid, , , , , , , status] = statusOf();
  expect(status?.trim()).toBe('starting');
  rmSync(hold);
  await using server = await opening;
  expect(statusOf()[0]).toBe(pid);
  expect(await query(server, 'select word from kept')).toEqual([{ word: 'muster' }]);
}, 300_000);
