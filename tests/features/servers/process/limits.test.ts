import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openServerFolders } from '../../../../src/features/servers/runtimes/process/server-folders.ts';
import { limitsOf, openServerGroups } from '../../../../src/features/servers/runtimes/process/server-groups.ts';
import type { ServerHandle } from '../../../../src/features/servers/runtimes/runtime.ts';
import { openCgroups, removeGroup } from '../../../../src/platform/system/cgroups.ts';
import { readStat } from '../../../../src/platform/system/processes.ts';
import { openTestRuntime, orderOf, PROCESS_RUNTIMES, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

const { controllers } = openCgroups();
const resources = { cpu: 100, memory: 64 };
/** Doubles a text until the machine refuses. */
const GREEDY = 'text=0123456789abcdef; while :; do text=$text$text; done';

describe.skipIf(controllers.length < 3).each(PROCESS_RUNTIMES)(
  'the runtime "$name": the limits of a server',
  (kind) => {
    let opened: TestRuntime;
    beforeAll(async () => {
      opened = await openTestRuntime(kind);
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    const groupOf = ({ server_id }: ServerHandle): string[] =>
      JSON.parse(readFileSync(join(opened.directory, 'servers', server_id, 'group'), 'utf8')).directories;
    /** Reads a file of the server's group, of whichever hierarchy has it. */
    const read = (directories: string[], name: string): string => {
      const directory = directories.find((one) => existsSync(join(one, name))) ?? '';
      return readFileSync(join(directory, name), 'utf8');
    };

    test('memory: a server that exceeds it is ended, and its end says so, also after a restart of the service', async () => {
      const server = await opened.run(GREEDY, { resources });
      const end = { is: 'ended', exit_code: null, exit_signal: 'SIGKILL', reason: 'it exceeded its memory of 64 MiB' };
      expect(await opened.waitForEnd(server)).toEqual(end as never);
      expect(await opened.observe(server, await opened.reopen())).toEqual(end as never);
      await opened.remove(server);
    });

    test('memory: a server whose child exceeds it goes on, and ends by itself', async () => {
      const server = await opened.run(`sh -c '${GREEDY}'; exit 4`, { resources });
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 4, exit_signal: null });
      await opened.remove(server);
    });

    test('memory: an end by SIGTERM is not blamed on a child that exceeded it before', async () => {
      const server = await opened.run(`sh -c '${GREEDY}'; echo up; exec sleep 600`, { resources });
      await waitFor(async () => (await opened.output(server)) === 'up\n', 'its child to be killed');
      await opened.stop(server);
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: 'SIGTERM' });
      await opened.remove(server);
    });

    test.each(['', '{"directories":["/sys'])(
      'a server that exceeded its memory ends, although the record of its group is damaged: %j',
      async (damaged) => {
        const server = await opened.run(GREEDY, { resources });
        const group = groupOf(server);
        await opened.waitForEnd(server);
        writeFileSync(join(opened.directory, 'servers', server.server_id, 'group'), damaged);
        const later = await opened.reopen();
        expect(await opened.observe(server, later)).toMatchObject({ is: 'ended', reason: 'it exceeded its memory' });
        await opened.remove(server, later);
        expect(group.filter((one) => existsSync(one))).toEqual([]);
      },
    );

    test('processor time: a server that always computes is limited', async () => {
      const server = await opened.run('while :; do :; done', { resources });
      const group = groupOf(server);
      await waitFor(() => !read(group, 'cpu.stat').includes('nr_throttled 0\n'), 'the server to be slowed down');
      await opened.remove(server);
    });

    test('processor time: a busy server leaves more of a core to the service than it gets', async () => {
      const script = `exec taskset 1 sh -c 'echo pinned; while :; do :; done'`;
      const server = await opened.run(script, { resources: { cpu: 1_000, memory: 64 } });
      await waitFor(async () => (await opened.output(server)) === 'pinned\n', 'the server to be on one core');
      // A program in the group of the service, with a session of its own, so that other programs do not share its time.
      const busy = ['taskset', '1', 'sh', '-c', 'while :; do :; done'];
      const own = Bun.spawn(busy, { detached: true });
      const ownUsed = () => readStat(own.pid)?.own_ms ?? 0;
      const before = { at_ms: performance.now(), server_ms: await opened.readProcessorTime(server), own_ms: ownUsed() };
      await waitFor(() => ownUsed() - before.own_ms > 1_000, 'the other program to be busy');
      const server_ms = (await opened.readProcessorTime(server)) - before.server_ms;
      const core_ms = performance.now() - before.at_ms;
      own.kill('SIGKILL');
      // Other tests take a part of what it leaves.
      expect(server_ms).toBeLessThan((core_ms - server_ms) * 0.75);
      await opened.remove(server);
    }, 300_000);

    test('processes: a server cannot have more than 512', async () => {
      // The shell that cannot fork ends, and the server goes on.
      const script = '(i=0; while [ $i -lt 600 ]; do sleep 600 & i=$((i+1)); done); exec sleep 600';
      const order = await orderOf(opened.directory, script);
      const server = await opened.start(order);
      const group = groupOf(server);
      await waitFor(async () => /fork/i.test(await opened.output(server, 'std_err')), 'the refusal');
      expect(Number(read(group, 'pids.current'))).toBeLessThanOrEqual(512);
      await opened.remove(server);
    });

    test('are removed with the server', async () => {
      const server = await opened.run('exec sleep 600', { resources });
      const group = groupOf(server);
      expect(group.length).toBeGreaterThan(0);
      for (const directory of group) expect(existsSync(directory)).toBe(true);
      await opened.remove(server);
      for (const directory of group) expect(existsSync(directory)).toBe(false);
    });
  },
);

test.skipIf(controllers.length < 3)('limits: a group is removed once its last process has ended', async () => {
  const directory = await makeDataDirectory();
  const folders = openServerFolders(directory);
  const groups = openServerGroups(folders, openCgroups());
  const server_id = crypto.randomUUID();
  mkdirSync(folders.folderOf(server_id));
  const group = groups.create(server_id, resources);
  const last = Bun.spawn(['sleep', '0.2']);
  for (const one of group) writeFileSync(join(one, 'cgroup.procs'), String(last.pid));
  await groups.remove(server_id);
  expect(group.filter((one) => existsSync(one))).toEqual([]);
  rmSync(directory, { recursive: true });
});

test.skipIf(controllers.length < 3)(
  'limits: a server that starts again has its new group, not the earlier one',
  async () => {
    const directory = await makeDataDirectory();
    const folders = openServerFolders(directory);
    const groups = openServerGroups(folders, openCgroups());
    const server_id = crypto.randomUUID();
    mkdirSync(folders.folderOf(server_id));
    writeFileSync(folders.group(server_id), JSON.stringify({ directories: [join(directory, 'gone')], memory: 64 }));
    expect(groups.processesOf(server_id)).toEqual([]);
    const group = groups.create(server_id, resources);
    const running = Bun.spawn(['sleep', '60']);
    for (const one of group) writeFileSync(join(one, 'cgroup.procs'), String(running.pid));
    expect(groups.processesOf(server_id)).toEqual([running.pid]);
    running.kill();
    await running.exited;
    await groups.remove(server_id);
    expect(group.filter((one) => existsSync(one))).toEqual([]);
    rmSync(directory, { recursive: true });
  },
);

test.skipIf(controllers.length < 3)(
  'limits: an old group without processes is removed, unless it is needed',
  async () => {
    const hours_ago = new Date(Date.now() - 2 * 3_600_000);
    const [needed, abandoned] = [crypto.randomUUID(), crypto.randomUUID()];
    const { create, directoriesOf } = openCgroups();
    for (const id of [needed, abandoned]) {
      create(id, limitsOf(resources));
      for (const directory of directoriesOf(id)) utimesSync(directory, hours_ago, hours_ago);
    }
    openCgroups((id) => id === needed);
    expect(directoriesOf(needed).every((one) => existsSync(one))).toBe(true);
    expect(directoriesOf(abandoned).some((one) => existsSync(one))).toBe(false);
    await removeGroup(directoriesOf(needed));
  },
);
