import { expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { databaseDirectoryOf } from '../support/keeper.ts';
import { findProcessesOf } from '../support/processes.ts';
import { waitFor } from '../support/wait.ts';

const ROOT = resolve(import.meta.dir, '../..');

/** Runs the tests of a file in tests/support/runs, with a PostgreSQL of their own. */
function run(name: string) {
  const { MUSTER_TEST_DATABASE_URL: _shared, ...env } = process.env;
  const command = [process.execPath, 'test', `./tests/support/runs/${name}.ts`];
  const child = Bun.spawn(command, { cwd: ROOT, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const written: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const piece of stream) written.push(decoder.decode(piece, { stream: true }));
  };
  return { child, output: () => written.join(''), reading: Promise.all([read(child.stdout), read(child.stderr)]) };
}

test('test runs: a test that times out leaves PostgreSQL running for the next', async () => {
  const { reading, output } = run('time-out');
  await reading;
  expect(output()).toContain('(fail) times out');
  expect(output()).toContain('(pass) after');
  expect(output()).toContain(' 2 pass');
}, 300_000);

test('test runs: a killed run leaves no process and no file', async () => {
  const { child, reading, output } = run('cut-short');
  const [, directory = ''] = await waitFor(() => /running in (\S+)/.exec(output()) ?? undefined, 'the game server');
  expect(findProcessesOf(directory).length).toBeGreaterThan(2);
  const directories = [directory, databaseDirectoryOf(directory)];
  expect(directories.filter((path) => !existsSync(path))).toEqual([]);
  child.kill('SIGKILL');
  await waitFor(() => directories.flatMap(findProcessesOf).length === 0, 'its processes to end');
  await waitFor(() => !directories.some((path) => existsSync(path)), 'its files to be removed');
  await reading;
}, 300_000);
