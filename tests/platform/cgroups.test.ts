import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type Controller,
  findExhaustedMemory,
  findHierarchies,
  limitFilesOf,
  openCgroups,
} from '../../src/platform/system/cgroups.ts';
import { makeDataDirectory } from '../support/service.ts';

const V1 = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd`;
const UNIFIED = '41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate';

describe('cgroups: the directory of the group of the service', () => {
  const CASES: [name: string, mountinfo: string, own: string, expected: object[]][] = [
    [
      'is one for each hierarchy of version 1, and other hierarchies are left out',
      V1,
      '9:name=systemd:/\n8:pids:/\n4:memory:/game/one\n1:cpu,cpuacct:/\n',
      [
        { version: 1, directory: '/sys/fs/cgroup/pids', is_root: true, controllers: ['pids'] },
        { version: 1, directory: '/sys/fs/cgroup/memory/game/one', is_root: false, controllers: ['memory'] },
        { version: 1, directory: '/sys/fs/cgroup/cpu,cpuacct', is_root: true, controllers: ['cpu'] },
      ],
    ],
    [
      'is a single one in version 2',
      UNIFIED,
      '0::/system.slice/muster.service\n',
      [{ version: 2, directory: '/sys/fs/cgroup/system.slice/muster.service', is_root: false, controllers: [] }],
    ],
    [
      'is the mounted one in a container that sees the names of its machine',
      V1.replace('0:36 / ', '0:36 /docker/c0ffee '),
      '8:pids:/docker/c0ffee\n',
      [{ version: 1, directory: '/sys/fs/cgroup/pids', is_root: false, controllers: ['pids'] }],
    ],
    ['is missing if it is outside of what is mounted', UNIFIED.replace('0:38 / ', '0:38 /one '), '0::/other\n', []],
    ['is missing without a mount', '', '8:pids:/\n0::/\n', []],
  ];
  test.each(CASES)('%s', (_, mountinfo, own, expected) => {
    expect(findHierarchies(mountinfo, own)).toEqual(expected as ReturnType<typeof findHierarchies>);
  });
});

describe('cgroups: limits are written in the units of each version', () => {
  const limits = { memory_bytes: 268_435_456, cpu: 1_500, processes_max: 512 };
  const CASES: [controller: Controller, version: 1 | 2, files: [string, string][]][] = [
    [
      'memory',
      1,
      [
        ['memory.limit_in_bytes', '268435456'],
        ['memory.memsw.limit_in_bytes', '268435456'],
      ],
    ],
    [
      'memory',
      2,
      [
        ['memory.max', '268435456'],
        ['memory.swap.max', '0'],
      ],
    ],
    [
      'cpu',
      1,
      [
        ['cpu.cfs_period_us', '100000'],
        ['cpu.cfs_quota_us', '150000'],
        ['cpu.shares', '512'],
      ],
    ],
    [
      'cpu',
      2,
      [
        ['cpu.max', '150000 100000'],
        ['cpu.weight', '50'],
      ],
    ],
    ['pids', 1, [['pids.max', '512']]],
    ['pids', 2, [['pids.max', '512']]],
  ];
  test.each(CASES)('%s, version %d', (controller, version, files) => {
    expect(limitFilesOf(controller, { version, limits })).toEqual(files);
  });

  test('but never below the least processor time that the kernel accepts', () => {
    const files = limitFilesOf('cpu', { version: 2, limits: { ...limits, cpu: 1 } });
    expect(files).toContainEqual(['cpu.max', '1000 100000']);
  });
});

describe('cgroups: processes that the kernel killed for memory', () => {
  const LIMIT = String(64 * 1_024 ** 2);
  const BELOW = String(20 * 1_024 ** 2);
  const ALMOST = String(63 * 1_024 ** 2);
  const unified = (oom: number, oom_kill: number, peak: string) => ({
    'memory.events': `low 0\nhigh 0\nmax 9\noom ${oom}\noom_kill ${oom_kill}\noom_group_kill 0\n`,
    'memory.max': LIMIT,
    'memory.peak': peak,
  });
  const old = (oom_kill: number, peak: string) => ({
    'memory.oom_control': `oom_kill_disable 0\nunder_oom 0\noom_kill ${oom_kill}\n`,
    'memory.limit_in_bytes': LIMIT,
    'memory.max_usage_in_bytes': peak,
  });
  const CASES: [
    what: string,
    files: Record<string, string>,
    is_in_pod: boolean,
    whose: 'group' | 'machine' | undefined,
  ][] = [
    ['none, version 1', old(0, LIMIT), false, undefined],
    ['none, version 2', unified(0, 0, LIMIT), false, undefined],
    ['of the group, version 1', old(1, LIMIT), false, 'group'],
    ['of the group, version 2', unified(2, 1, LIMIT), false, 'group'],
    ['of the machine, version 1', old(1, BELOW), false, 'machine'],
    ['of the machine, version 2, although the group was full of cached files', unified(0, 1, LIMIT), false, 'machine'],
    ['of the pod around the group', unified(0, 1, ALMOST), true, 'group'],
    ['of the machine of a pod', unified(0, 1, BELOW), true, 'machine'],
  ];
  test.each(CASES)('%s', async (_, files, is_in_pod, whose) => {
    const directory = await makeDataDirectory();
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), `${text}\n`);
    expect(findExhaustedMemory(['/nowhere', directory], { is_in_pod })).toBe(whose);
    rmSync(directory, { recursive: true });
  });
});

test('cgroups: a group is not reported as empty if no descriptor is free', async () => {
  const directory = await makeDataDirectory();
  writeFileSync(join(directory, 'cgroup.procs'), `${process.pid}\n`);
  const code = `
    import { openSync } from 'node:fs';
    import { listGroupProcesses } from '${join(import.meta.dir, '../../src/platform/system/cgroups.ts')}';
    const found = listGroupProcesses(['${directory}']).length;
    try { for (;;) openSync('/dev/null', 'r'); } catch {}
    try { console.log(found, listGroupProcesses(['${directory}']).length); } catch (error) { console.log(found, error.code); }
  `;
  const child = Bun.spawn(['/bin/sh', '-c', 'ulimit -n 128; exec "$0" -e "$1"', process.execPath, code], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  expect((await new Response(child.stdout).text()).trim()).toBe('1 EMFILE');
  rmSync(directory, { recursive: true });
});

const { controllers, directoriesOf } = openCgroups();
test.skipIf(controllers.length === 0)('cgroups: the group of a trial that was interrupted takes no limit away', () => {
  const left = directoriesOf('any').map((directory) => join(dirname(directory), `muster-trial-${process.pid}`));
  for (const directory of left) mkdirSync(directory);
  expect(openCgroups().controllers).toEqual(controllers);
  expect(left.filter((directory) => existsSync(directory))).toEqual([]);
});
