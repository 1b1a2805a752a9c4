import { afterAll, beforeAll, expect, test } from 'bun:test';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasErrorCode } from '../../src/platform/system/system-errors.ts';
import { waitFor } from '../support/wait.ts';

const EVENTS = join(import.meta.dir, '../../src/platform/events.ts');
/** More than fits into a pipe and the queue of lines. */
const LINES = 40_000;
const SOURCE = `
  const { createLog } = await import(${JSON.stringify(EVENTS)});
  const log = createLog('info');
  for (let line = 1; line <= ${LINES}; line += 1) {
    log.emit({ event: 'feed_reconnected' });
    if (line % 1_000 === 0) await Bun.sleep(1);
  }
  console.log('still at work');
  await Bun.stdin.text();
  await log.flush();
  process.exit(0);`;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-log-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Starts a program that logs to a pipe which stays open and unread, and waits until its work is done. */
async function startUnread(name: string) {
  const pipe = join(directory, name);
  Bun.spawnSync(['mkfifo', pipe]);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const command = ['/bin/sh', '-c', 'exec "$0" -e "$1" 2>"$2"', process.execPath, SOURCE, pipe];
  const child = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit', env: {} });
  const { value: printed } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(printed)).toBe('still at work\n');
  const bytes = Buffer.alloc(65_536);
  return {
    child,
    /** Returns what is in the pipe now. */
    read(): string {
      try {
        return bytes.toString('latin1', 0, readSync(reader, bytes));
      } catch (error) {
        if (hasErrorCode(error, 'EAGAIN')) return '';
        throw error;
      }
    },
    [Symbol.dispose]() {
      closeSync(reader);
      child.kill('SIGKILL');
    },
  };
}

test('log: an unread log does not stop the work; once it is read again, it reports how many lines are missing', async () => {
  using program = await startUnread('read-again');
  let text = '';
  await waitFor(() => {
    text += program.read();
    return text.endsWith('\n') && text.includes('log_lines_dropped');
  }, 'the report of missing lines');
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  expect(lines.at(-1)).toMatchObject({ level: 'error', event: 'log_lines_dropped', count: LINES - lines.length + 1 });
  expect(lines.length).toBeLessThan(LINES);
  program.child.stdin.end();
  expect(await program.child.exited).toBe(0);
});

test('log: an unread log does not keep the program from ending', async () => {
  using program = await startUnread('never-read');
  program.child.stdin.end();
  expect(await program.child.exited).toBe(0);
});
