import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerHandle } from '../../../src/features/servers/runtimes/runtime.ts';
import { identifyProcess } from '../../../src/platform/processes.ts';
import { IS_ROOT, nextUser, openTestRuntime, RUNTIMES, type TestRuntime } from '../../support/runtimes.ts';
import { waitFor } from '../../support/wait.ts';

/** What a server can make of itself, and how many processes of it write their numbers. */
const TREES = [
  ['with a child', 2, 'sleep 600 & echo $! $$; wait'],
  ['with grandchildren', 3, 'sh -c "sleep 600 & sleep 600 & echo \\$! \\$\\$; wait" & echo $$; wait'],
  ['with a child in a session of its own', 2, 'setsid sleep 600 & echo $! $$; wait'],
  ['with a daemon', 2, '(setsid sh -c "echo \\$\\$; exec sleep 600" &) ; echo $$; exec sleep 600'],
  ['with a daemon in another place', 1, '(cd / && setsid nohup sh -c "echo \\$\\$; exec sleep 600" &); exec sleep 600'],
  ['that hears no signal', 2, 'trap "" TERM INT HUP USR1; sleep 600 & echo $! $$; wait'],
  ['that stands still', 1, 'echo $$; kill -STOP $$'],
  ['that has ended and left a child', 1, 'sleep 600 & echo $!'],
  ['that has ended and left a daemon', 1, 'setsid sleep 600 & echo $!'],
] as const;

describe.each(RUNTIMES)('the whole tree of a server by the runtime $name', (kind) => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(kind);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Starts a server and waits for its tree: for so many numbers that are written. */
  async function grow(
    script: string,
    count: number,
    user_id?: number,
  ): Promise<{ server: ServerHandle; pids: number[] }> {
    const server = await opened.run(script, { user_id });
    const pids = await waitFor(async () => {
      const words = (await opened.output(server)).split(/\s+/).slice(0, -1);
      return words.length === count && words.map(Number);
    }, 'its tree to be there');
    return { server, pids };
  }

  const alive = (pids: number[]) => pids.filter((pid) => identifyProcess(pid));

  describe.each([
    { as: 'a user of its own', user: nextUser, is_possible: IS_ROOT },
    { as: 'the user that we are', user: () => undefined, is_possible: true },
  ])('as $as', ({ user, is_possible }) => {
    test.skipIf(!is_possible).each(TREES)('%s: nothing of it is left when it is killed', async (_, count, script) => {
      const { server, pids } = await grow(script, count, user());
      await opened.kill(server);
      expect(alive(pids)).toEqual([]);
      expect((await opened.observe(server)).is).toBe('ended');
      expect((await opened.observe({ ...server, process: undefined })).is).toBe('ended');
    });
  });

  const DISGUISES = [
    ['hides its environment', 'env -i'],
    ['bears the mark of another server', `MUSTER_SERVER_ID=${crypto.randomUUID()}`],
  ];
  test.skipIf(!IS_ROOT).each(DISGUISES)('what %s is found by its user', async (_, disguise) => {
    const { server, pids } = await grow(`${disguise} setsid sleep 600 & echo $!`, 1, nextUser());
    expect(alive(pids)).toEqual(pids);
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
  });

  test('what hides its environment is found by its parent, where it has our user', async () => {
    const { server, pids } = await grow('env -i setsid sleep 600 & echo $!; wait', 1);
    await opened.kill(server);
    expect(alive(pids)).toEqual([]);
  });

  test('servers are killed together, each with all of its own', async () => {
    const trees = await Promise.all(
      Array.from({ length: 12 }, () => grow('setsid sleep 600 & echo $! $$; wait', 2, nextUser())),
    );
    const bystander = await grow('sleep 600 & echo $! $$; wait', 2);
    const gone = await opened.runtime.kill(trees.map(({ server }) => server));
    expect([...gone].sort()).toEqual(trees.map(({ server }) => server.server_id).sort());
    expect(alive(trees.flatMap(({ pids }) => pids))).toEqual([]);
    expect(alive(bystander.pids)).toEqual(bystander.pids);
  });

  test.skipIf(!IS_ROOT || !Bun.which('prlimit'))(
    'servers are killed together, also when one has all the processes that its user may have',
    async () => {
      const full = await grow('for n in 1 2 3 4 5 6 7 8; do sleep 600 & done; echo $$; wait', 1, nextUser());
      const other = await grow('sleep 600 & echo $! $$; wait', 2, nextUser());
      using _ = limitProcesses(4);
      const gone = await opened.runtime.kill([full.server, other.server]);
      expect([...gone].sort()).toEqual([full.server.server_id, other.server.server_id].sort());
      expect(alive([...full.pids, ...other.pids])).toEqual([]);
    },
  );

  // Each of its processes ends as soon as the next is born: whoever lists them never sees one. After 5,000 it gives up, so
  // that a run which is cut short leaves nothing behind.
  test.skipIf(!IS_ROOT || !Bun.which('perl'))('what runs away is caught', async () => {
    const running = 'use POSIX; while ($n++ < 5000) { exit if fork; setsid; open F, ">>count"; print F "x"; close F }';
    const server = await opened.run(`cd $HOME; perl -e '${running}' & exec sleep 600`, { user_id: nextUser() });
    const counted = join(opened.directory, 'servers', server.server_id, 'work/count');
    await waitFor(() => Bun.file(counted).size > 5, 'it to run');
    await opened.kill(server);
    const last = Bun.file(counted).size;
    for (let time = 0; time < 20; time += 1) await Bun.spawn(['true']).exited;
    expect(Bun.file(counted).size).toBe(last);
  });

  test('others are not touched: neither another server of the same user nor a stranger', async () => {
    const other = await grow('sleep 600 & echo $!; wait', 1);
    const one = await grow('sleep 600 & echo $!; wait', 1);
    await using stranger = Bun.spawn(['sleep', '600']);
    await opened.remove(one.server);
    expect(alive(one.pids)).toEqual([]);
    expect(alive([stranger.pid, ...other.pids])).toEqual([stranger.pid, ...other.pids]);
    expect((await opened.observe(other.server)).is).toBe('running');
  });

  test('it is asked to end when it can hear it, also while it is being started', async () => {
    for (let time = 0; time < 20; time += 1) {
      const server = await opened.run('exec sleep 600');
      await waitFor(() => opened.runtime.stop(server), 'it to be asked');
      expect(await opened.endOf(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: 'SIGTERM' });
    }
  });

  test('it is asked as one: every process of the group hears SIGTERM', async () => {
    const child = `sh -c 'trap "echo child; exit 0" TERM; echo 1; while :; do sleep 0.01; done' &`;
    const { server } = await grow(`trap 'wait; echo parent; exit 4' TERM; ${child} echo 2; wait; wait`, 2);
    opened.runtime.stop(server);
    expect(await opened.endOf(server)).toEqual({ is: 'ended', exit_code: 4, exit_signal: null });
    expect((await opened.output(server)).split('\n').sort()).toEqual(['', '1', '2', 'child', 'parent']);
  });
});

/** Limits how many processes each user of what we start may have; root is exempt. */
function limitProcesses(count: number): Disposable {
  const setLimit = (limit: number | 'unlimited') =>
    Bun.spawnSync(['prlimit', '--pid', String(process.pid), `--nproc=${limit}:`]);
  const [, before = ''] = /^Max processes +(\w+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  setLimit(count);
  return { [Symbol.dispose]: () => void setLimit(before === 'unlimited' ? before : Number(before)) };
}
