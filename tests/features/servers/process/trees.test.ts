import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerHandle } from '../../../../src/features/servers/runtimes/runtime.ts';
import { openCgroups } from '../../../../src/platform/system/cgroups.ts';
import { identifyProcess, readStat, sessionOf } from '../../../../src/platform/system/processes.ts';
import {
  IS_ROOT,
  openTestRuntime,
  PROCESS_RUNTIMES,
  pidOf,
  type TestRuntime,
} from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

const has_groups = openCgroups().controllers.length > 0;

/** Shapes of a server's process tree, and how many of its processes print their pids. */
const TREES = [
  ['with a child', 2, 'sleep 600 & echo $! $$; wait'],
  ['with grandchildren', 3, 'sh -c "sleep 600 & sleep 600 & echo \\$! \\$\\$; wait" & echo $$; wait'],
  ['with a child in a session of its own', 2, 'setsid sleep 600 & echo $! $$; wait'],
  ['with a daemon', 2, '(setsid sh -c "echo \\$\\$; exec sleep 600" &) ; echo $$; exec sleep 600'],
  ['with a daemon in another place', 1, '(cd / && setsid nohup sh -c "echo \\$\\$; exec sleep 600" &); exec sleep 600'],
  ['that ignores signals', 2, 'trap "" TERM INT HUP USR1; sleep 600 & echo $! $$; wait'],
  ['that is stopped', 1, 'echo $$; kill -STOP $$'],
  ['that has ended and left a child', 1, 'sleep 600 & echo $!'],
  ['that has ended and left a daemon', 1, 'setsid sleep 600 & echo $!'],
] as const;

describe.each(PROCESS_RUNTIMES)('the runtime "$name": the process tree of a server', (kind) => {
  const has_own_user = kind === PROCESS_RUNTIMES[0] && IS_ROOT;
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(kind);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Starts a server and waits until this many pids are printed. */
  async function grow(script: string, count: number): Promise<{ server: ServerHandle; pids: number[] }> {
    const server = await opened.run(script);
    const pids = await waitFor(async () => {
      const words = (await opened.output(server)).split(/\s+/).slice(0, -1);
      return words.length === count && words.map(Number);
    }, 'the process tree');
    return { server, pids };
  }

  const alive = (pids: number[]) => pids.filter((pid) => identifyProcess(pid));

  test.each(TREES)('%s leaves no process when it is killed', async (_, count, script) => {
    const { server, pids } = await grow(script, count);
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
    expect((await opened.observe(server)).is).toBe('ended');
    expect((await opened.observe({ ...server, identity: undefined })).is).toBe('ended');
  });

  const DISGUISES = [
    ['hides its environment', 'env -i'],
    ['has the mark of another server', `MUSTER_SERVER_ID=${crypto.randomUUID()}`],
  ];
  test.skipIf(!has_own_user).each(DISGUISES)('is found by its user where a process %s', async (_, disguise) => {
    const { server, pids } = await grow(`${disguise} setsid sleep 600 & echo $!`, 1);
    expect(alive(pids)).toEqual(pids);
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
  });

  test('is found by its parent where a process of the same user hides its environment', async () => {
    const { server, pids } = await grow('env -i setsid sleep 600 & echo $!; wait', 1);
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
  });

  const DAEMON = 'setsid sh -c "echo \\$\\$; exec sleep 600" </dev/null';
  test.skipIf(!has_groups)('is found by its control group where a daemon hides its environment', async () => {
    const { server, pids } = await grow(`(env -i PATH="$PATH" ${DAEMON} &); exec sleep 600`, 1);
    await waitFor(
      () => pids.every((pid) => sessionOf(readStat(pid)?.parent ?? 0) !== pidOf(server)),
      'the daemon to lose its parent',
    );
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
  });

  test.skipIf(!has_groups)('is not that of another server, although a daemon has the mark of it', async () => {
    const other = await grow('echo $$; exec sleep 600', 1);
    const mark = `MUSTER_SERVER_ID=${other.server.server_id}`;
    const { server, pids } = await grow(`(${mark} ${DAEMON} &); exec sleep 600`, 1);
    await opened.kill(other.server);
    expect(alive(pids)).toEqual(pids);
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
  });

  const has_threads = Bun.which('perl') !== null && Bun.spawnSync(['perl', '-Mthreads', '-e', '1']).exitCode === 0;
  test.skipIf(!has_threads)(
    'is killed although its main thread has ended, so that the kernel shows a zombie',
    async () => {
      const halving = `threads->create(sub { sleep 600 }); syscall(${EXIT_OF_THREAD}, 0)`;
      const script = `setsid perl -Mthreads -e '${halving}' & echo $!; wait`;
      const { server, pids } = await grow(script, 1);
      const [pid = 0] = pids;
      await waitFor(
        () => readFileSync(`/proc/${pid}/status`, 'utf8').includes('\nState:\tZ'),
        'its main thread to end',
      );
      expect(readThreads(pid)).toBeGreaterThan(1);
      await opened.kill(server);
      expect(readThreads(pid)).toBeLessThanOrEqual(1);
    },
  );

  test('is killed together with those of others, each whole', async () => {
    const trees = await Promise.all(Array.from({ length: 12 }, () => grow('setsid sleep 600 & echo $! $$; wait', 2)));
    const bystander = await grow('sleep 600 & echo $! $$; wait', 2);
    const killed = await opened.runtime.kill(trees.map(({ server }) => server));
    expect([...killed].sort()).toEqual(trees.map(({ server }) => server.server_id).sort());
    expect(alive(trees.flatMap(({ pids }) => pids))).toEqual([]);
    expect(alive(bystander.pids)).toEqual(bystander.pids);
  });

  test.skipIf(!has_own_user || !Bun.which('prlimit'))(
    'is killed together with those of others, also if one has all the processes of its user',
    async () => {
      const full = await grow('for n in 1 2 3 4 5 6 7 8; do sleep 600 & done; echo $$; wait', 1);
      const other = await grow('sleep 600 & echo $! $$; wait', 2);
      using _ = limitProcesses(4);
      const killed = await opened.runtime.kill([full.server, other.server]);
      expect([...killed].sort()).toEqual([full.server.server_id, other.server.server_id].sort());
      expect(alive([...full.pids, ...other.pids])).toEqual([]);
    },
  );

  // Each process ends as soon as the next is born, so no listing sees one. After 5,000 it gives up, so that an
  // interrupted run leaves nothing behind.
  test.skipIf(!has_own_user || !Bun.which('perl'))('is killed although it runs away', async () => {
    const running = 'use POSIX; while ($n++ < 5000) { exit if fork; setsid; open F, ">>count"; print F "x"; close F }';
    const server = await opened.run(`cd $HOME; perl -e '${running}' & exec sleep 600`);
    const counted = join(opened.directory, 'servers', server.server_id, 'work/count');
    await waitFor(() => Bun.file(counted).size > 5, 'it to run');
    await opened.kill(server);
    const last = Bun.file(counted).size;
    for (let time = 0; time < 20; time += 1) await Bun.spawn(['true']).exited;
    expect(Bun.file(counted).size).toBe(last);
  });

  test('is all that is killed: no other server of the same user, and no other process', async () => {
    const other = await grow('sleep 600 & echo $!; wait', 1);
    const one = await grow('sleep 600 & echo $!; wait', 1);
    await using stranger = Bun.spawn(['sleep', '600']);
    await opened.remove(one.server);
    expect(alive(one.pids)).toEqual([]);
    expect(alive([stranger.pid, ...other.pids])).toEqual([stranger.pid, ...other.pids]);
    expect((await opened.observe(other.server)).is).toBe('running');
  });

  test('gets SIGTERM as a whole group', async () => {
    const child = `sh -c 'trap "echo child; exit 0" TERM; echo 1; while :; do sleep 0.01; done' &`;
    const { server } = await grow(`trap 'wait; echo parent; exit 4' TERM; ${child} echo 2; wait; wait`, 2);
    await opened.stop(server);
    expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 4, exit_signal: null });
    expect((await opened.output(server)).split('\n').sort()).toEqual(['', '1', '2', 'child', 'parent']);
  });

  test.each(['HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'ALRM', 'TERM'])(
    'may send SIG%s to its own group, and its exit code is known',
    async (signal) => {
      const server = await opened.run(`trap "echo got" ${signal}; kill -${signal} 0; exit 6`);
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 6, exit_signal: null });
      expect(await opened.output(server)).toBe('got\n');
    },
  );
});

/** The number of the system call by which one thread ends. */
const EXIT_OF_THREAD = process.arch === 'arm64' ? 93 : 60;

/** Returns how many threads a process has, with its main thread; 0 if there is no such process. */
function readThreads(pid: number): number {
  try {
    return Number(/^Threads:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

/** Limits how many processes each user of a server may have; root is exempt. */
function limitProcesses(count: number): Disposable {
  const setLimit = (limit: number | 'unlimited') =>
    Bun.spawnSync(['prlimit', '--pid', String(process.pid), `--nproc=${limit}:`]);
  const [, before = ''] = /^Max processes +(\w+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  setLimit(count);
  return { [Symbol.dispose]: () => void setLimit(before === 'unlimited' ? before : Number(before)) };
}
