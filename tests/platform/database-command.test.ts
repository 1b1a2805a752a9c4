import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { readToEnd } from '../support/processes.ts';

const SOURCES = join(import.meta.dir, '../../src');

/** Runs work that stops itself by SIGTERM and then fails. */
async function stopAndFail(failure: string) {
  const script = `
    const { runDatabaseCommand } = await import(${JSON.stringify(join(SOURCES, 'commands/database-command.ts'))});
    const { createOutput } = await import(${JSON.stringify(join(SOURCES, 'commands/command-output.ts'))});
    const { StartError } = await import(${JSON.stringify(join(SOURCES, 'platform/errors.ts'))});
    const work = async (signal) => {
      const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
      process.kill(process.pid, 'SIGTERM');
      await stopped;
      throw ${failure};
    };
    const running = runDatabaseCommand({ not_done: 'Nothing was done', output: createOutput(false) }, work);
    process.exit(await running.catch(({ message }) => {
      console.error(message);
      return 1;
    }));`;
  const child = Bun.spawn([process.execPath, '-e', script], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const { exit_code, stderr } = await readToEnd(child);
  return { exit_code, stderr };
}

test('commands: what a signal ended says so, and what failed for another reason says that', async () => {
  const stopped = { exit_code: 130, stderr: 'Nothing was done, because SIGTERM stopped it.\n' };
  expect(await stopAndFail('signal.reason')).toEqual(stopped);
  expect(await stopAndFail('new Error("a stream was closed")')).toEqual(stopped);
  expect(await stopAndFail('new StartError("The disk is full.")')).toEqual({
    exit_code: 1,
    stderr: 'The disk is full.\n',
  });
});
