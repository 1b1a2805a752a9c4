import { afterEach, describe, expect, test } from 'bun:test';
import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Subprocess } from 'bun';
import {
  findProcessesByEnvironment,
  identifyProcess,
  isRunning,
  readCommandLine,
  readStat,
  readUserIds,
  sessionOf,
  signalProcess,
  workingDirectoryOf,
} from '../../src/platform/system/processes.ts';
import { hasErrorCode } from '../../src/platform/system/system-errors.ts';
import { makeDataDirectory } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const IS_ROOT = process.getuid?.() === 0;
/** No user of this machine has this id. */
const STRANGE_UID = 61_234;

const started: Subprocess[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
});

function start(
  command: string[],
  options: { env?: Record<string, string>; uid?: number; detached?: boolean; cwd?: string } = {},
): Subprocess {
  const child = Bun.spawn(command, { env: {}, ...options, stdio: ['ignore', 'ignore', 'ignore'] });
  started.push(child);
  return child;
}

function identify(pid: number) {
  const identity = identifyProcess(pid);
  if (!identity) throw new Error(`there is no process ${pid}`);
  return identity;
}

/** Returns the pids of a process's children, as the kernel lists them. */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

describe('a process', () => {
  test('is identified by its pid, its start time and the boot', () => {
    const { pid } = start(['/bin/sleep', '60']);
    const identity = identify(pid);
    expect(identity).toEqual({
      pid,
      start_ticks: expect.any(Number),
      boot_id: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    });
    expect(identity.start_ticks).toBeGreaterThanOrEqual(identify(process.pid).start_ticks);
    expect(identifyProcess(pid)).toEqual(identity);
    expect(isRunning(identity)).toBe(true);
  });

  test('is not running after its end', async () => {
    const child = start(['/bin/sleep', '60']);
    const identity = identify(child.pid);
    child.kill('SIGKILL');
    await child.exited;
    expect(isRunning(identity)).toBe(false);
    expect(identifyProcess(child.pid)).toBeUndefined();
  });

  const LOOKALIKES = [
    { name: 'a later process with the same pid', alter: { start_ticks: 1 } },
    { name: 'a process with the same pid and start time in another boot', alter: { boot_id: crypto.randomUUID() } },
  ];
  for (const { name, alter } of LOOKALIKES) {
    test(`is not mistaken for ${name}`, () => {
      const identity = identify(start(['/bin/sleep', '60']).pid);
      expect(isRunning({ ...identity, ...alter })).toBe(false);
    });
  }

  test('is not running once it is dead, also before its parent has waited for it', async () => {
    // The shell becomes a program that never waits for the shell's child.
    const parent = start(['/bin/sh', '-c', '/bin/sleep 0.01 & exec /bin/sleep 60']);
    const [child = 0] = await waitFor(() => {
      const children = childrenOf(parent.pid);
      return children.length === 1 && children;
    }, 'the child');
    await waitFor(() => readFileSync(`/proc/${child}/stat`, 'utf8').includes(') Z '), 'its end');
    expect(identifyProcess(child)).toBeUndefined();
    expect(() => process.kill(child, 0)).not.toThrow();
  });

  test('may have any name, also with spaces and brackets', async () => {
    const directory = await makeDataDirectory();
    const program = join(directory, 'x) Z 1 (y');
    copyFileSync('/bin/sleep', program);
    chmodSync(program, 0o755);
    const { pid } = start([program, '60'], { detached: true });
    await waitFor(
      () => readFileSync(`/proc/${pid}/stat`, 'utf8').includes('(x) Z 1 (y)'),
      'the process to have its name',
    );
    expect(isRunning(identify(pid))).toBe(true);
    expect(sessionOf(pid)).toBe(pid);
    rmSync(directory, { recursive: true });
  });

  test('has a session: its own or that of its parent', () => {
    expect(sessionOf(start(['/bin/sleep', '60']).pid)).toBe(sessionOf(process.pid) ?? -1);
    const { pid } = start(['/bin/sleep', '60'], { detached: true });
    expect(sessionOf(pid)).toBe(pid);
  });

  test('has a working directory', async () => {
    const directory = await makeDataDirectory();
    expect(workingDirectoryOf(start(['/bin/sleep', '60'], { cwd: directory }).pid)).toBe(directory);
    rmSync(directory, { recursive: true });
  });
});

describe('a process that does not exist', () => {
  // Above the largest pid of Linux.
  const NO_PROCESS = 2 ** 22 + 1;
  test('has no identity, no session and no working directory', () => {
    expect([identifyProcess(NO_PROCESS), sessionOf(NO_PROCESS), workingDirectoryOf(NO_PROCESS)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('gets signals without an error', () => {
    expect(() => signalProcess(NO_PROCESS, 'SIGTERM')).not.toThrow();
  });
});

describe('processes are found', () => {
  test('by a whole entry of their environment', async () => {
    const mark = crypto.randomUUID();
    const { pid } = start(['/bin/sleep', '60'], { env: { MUSTER_SERVER_ID: mark, OTHER: 'x' } });
    start(['/bin/sleep', '60'], { env: { MUSTER_SERVER_ID: `${mark}0`, X_MUSTER_SERVER_ID: mark } });
    expect(findProcessesByEnvironment(`MUSTER_SERVER_ID=${mark}`)).toEqual([pid]);
    expect(findProcessesByEnvironment(`MUSTER_SERVER_ID=${crypto.randomUUID()}`)).toEqual([]);
  });

  test('with their descendants, also in other sessions', async () => {
    const mark = crypto.randomUUID();
    const { pid } = start(['/bin/sh', '-c', '/usr/bin/setsid /bin/sleep 60 & wait'], { env: { MARK: mark } });
    const found = await waitFor(() => {
      const pids = findProcessesByEnvironment(`MARK=${mark}`);
      return pids.length >= 2 && pids.some((other) => sessionOf(other) === other) && pids;
    }, 'the child in its own session');
    expect(found).toContain(pid);
    for (const other of found) signalProcess(other, 'SIGKILL');
    await waitFor(() => findProcessesByEnvironment(`MARK=${mark}`).length === 0, 'all processes to end');
  });
});

test.skipIf(!IS_ROOT)(
  'readUserIds: returns the real and the effective user, and nothing for a process that does not exist',
  async () => {
    const { pid } = start(['/bin/sleep', '60'], { uid: STRANGE_UID });
    expect(readUserIds(pid)).toEqual([STRANGE_UID, STRANGE_UID]);
    expect(readUserIds(2 ** 22 + 1)).toEqual([]);
  },
);

test('readStat: tells that a process runs another program, even of the same name', async () => {
  const directory = await makeDataDirectory();
  try {
    const script = 'until test -e go; do /bin/sleep 0.02; done; exec /bin/sh -c "/bin/sleep 60; exit"';
    const { pid } = start(['/bin/sh', '-c', script], { cwd: directory });
    const programOf = (ending: string) =>
      waitFor(() => readCommandLine(pid).at(-1)?.endsWith(ending) && readStat(pid)?.program, 'the program');
    const first = await programOf('"');
    expect(first).toMatch(/^\(sh \d+ \d+$/);
    expect(readStat(pid)?.program).toBe(first);
    writeFileSync(join(directory, 'go'), '');
    const second = await programOf(' exit');
    expect(second).toMatch(/^\(sh \d+ \d+$/);
    expect(second).not.toBe(first);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('hasErrorCode: recognizes an error by its code', () => {
  const error = Object.assign(new Error('the name is taken'), { code: 'EADDRINUSE' });
  expect([
    hasErrorCode(error, 'EADDRINUSE'),
    hasErrorCode(error, 'EACCES'),
    hasErrorCode({ code: 'EADDRINUSE' }, 'EADDRINUSE'),
  ]).toEqual([true, false, false]);
});

test('identifyProcess: throws if no descriptor is free, instead of reporting the process as ended', async () => {
  const code = `
    import { openSync } from 'node:fs';
    import { identifyProcess } from '${join(import.meta.dir, '../../src/platform/system/processes.ts')}';
    const known = identifyProcess(process.pid) !== undefined;
    try { for (;;) openSync('/dev/null', 'r'); } catch {}
    try { console.log(known, identifyProcess(process.pid) !== undefined); } catch (error) { console.log(known, error.code); }
  `;
  const child = Bun.spawn(['/bin/sh', '-c', 'ulimit -n 128; exec "$0" -e "$1"', process.execPath, code], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  expect((await new Response(child.stdout).text()).trim()).toBe('true EMFILE');
});
