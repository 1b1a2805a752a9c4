import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Runtime, ServerHandle } from '../../../../src/features/servers/runtimes/runtime.ts';
import { forEachAtOnce } from '../../../../src/platform/pacing.ts';
import { listProcesses, readStat, signalProcess } from '../../../../src/platform/system/processes.ts';
import { IS_FULL_LENGTH } from '../../../support/full-length.ts';
import { mountsIn } from '../../../support/leftovers.ts';
import { findProcessesOf } from '../../../support/processes.ts';
import { makeImage, WITHOUT_CONTAINERS } from '../../../support/runtimes/containers.ts';
import { CONTAINER_RUNTIME, openTestRuntime, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

const STARTS = IS_FULL_LENGTH ? 100 : 24;
const CONCURRENCY = 4;
/** Times from the beginning of a start to the kill of the service that starts the container. */
const KILLED_AFTER_MS = [0, 10, 20, 30, 40, 50, 60, 80, 100, 120, 150, 200];

/** The programs of a container, by the names that the kernel shows. */
const PROGRAMS: Record<string, RegExp> = {
  shim: /^sh$/m,
  pasta: /^(pasta|passt)/,
  runc: /^(runc|crun)$/m,
  init: /^init$/m,
};

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('containers', () => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(CONTAINER_RUNTIME);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Ends and removes everything that a runtime lists. */
  async function removeAll(runtime: Runtime): Promise<void> {
    const listed = await runtime.list();
    expect(await runtime.kill(listed)).toEqual(new Set(listed.map(({ server_id }) => server_id)));
    for (const { server_id } of listed) await runtime.remove(server_id);
  }

  test(`leave nothing after ${STARTS} starts and stops`, async () => {
    const ids: string[] = [];
    await forEachAtOnce(
      Array.from({ length: STARTS }).map((_, index) => index),
      CONCURRENCY,
      async (index) => {
        // Some end by themselves, some are stopped, some are killed.
        const server = await opened.run(index % 3 === 0 ? 'sleep 600 & exit 3' : 'sleep 600 & exec sleep 600');
        ids.push(server.server_id);
        if (index % 3 === 1) await opened.stop(server);
        if (index % 3 < 2) await opened.waitForEnd(server);
        await opened.remove(server);
      },
    );
    expect(await opened.runtime.list()).toEqual([]);
    expect(ids.flatMap(tracesOf)).toEqual([]);
    // Without processes and mounts it has no network either.
    expect(mountsIn(opened.directory, process.pid)).toEqual([]);
    expect(countZombies()).toBe(0);
  }, 300_000);

  test.each(Object.keys(PROGRAMS))('leave nothing after one of their programs was killed: %s', async (name) => {
    const server = await opened.run('sleep 600 & exec sleep 600');
    const pid = await findProgram(server, name);
    signalProcess(pid, 'SIGKILL');
    await waitFor(() => readStat(pid)?.is_dead !== false, 'it to be killed');
    await opened.remove(server);
    expect(tracesOf(server.server_id)).toEqual([]);
    expect(await opened.runtime.list()).toEqual([]);
  });

  test('end when their network has ended, and say why', async () => {
    const server = await opened.run('exec sleep 600');
    const pid = await findProgram(server, 'pasta');
    signalProcess(pid, 'SIGKILL');
    expect(await opened.waitForEnd(server)).toMatchObject({
      reason: 'the network of its container ended unexpectedly',
    });
    await opened.remove(server);
    expect(tracesOf(server.server_id)).toEqual([]);
  });

  test('can be adopted or removed after the service was killed at any point of their start', async () => {
    const build = await makeImage(opened.directory, 'exec sleep 600');
    for (const after_ms of KILLED_AFTER_MS) {
      const order = await opened.orderOf('', { build });
      const service = Bun.spawn([process.execPath, 'tests/support/runtimes/container-starter.ts', opened.directory], {
        stdin: new Blob([JSON.stringify(order)]),
        stdout: 'pipe',
      });
      const { value } = await service.stdout.getReader().read();
      expect(Buffer.from(value ?? []).toString()).toBe('starting\n');
      await Bun.sleep(after_ms);
      service.kill('SIGKILL');
      await service.exited;
      const runtime = await opened.reopen();
      const server = { server_id: order.server_id, identity: undefined };
      const seen = await opened.observe(server, runtime);
      expect(['absent', 'pending', 'running', 'ended']).toContain(seen.is);
      // Absent or ended, it is started again, as the service does.
      const { identity } = await opened.start(order, runtime);
      expect(await opened.observe({ ...server, identity }, runtime)).toMatchObject({ is: 'running' });
      await removeAll(runtime);
      expect(tracesOf(order.server_id)).toEqual([]);
    }
  }, 300_000);
});

/** The processes and control groups of a container. */
function tracesOf(server_id: string): string[] {
  const groups = readdirSync('/sys/fs/cgroup').flatMap((hierarchy) =>
    list(join('/sys/fs/cgroup', hierarchy, 'muster-containers')),
  );
  const cgroups = [...groups, ...list('/sys/fs/cgroup/muster-containers')].filter((name) => name === server_id);
  return [...findProcessesOf(server_id).map((pid) => `process ${pid}`), ...cgroups.map((name) => `group ${name}`)];
}

/** Waits for a program of a container. Returns its pid. */
const findProgram = ({ server_id }: ServerHandle, name: string): Promise<number> =>
  waitFor(() => listProcesses().find((pid) => isProgramOf(pid, { name, server_id })), `the container's ${name}`);

/** Returns whether a process is a program of a container: one of those around it, or its first process. */
function isProgramOf(pid: number, { name, server_id }: { name: string; server_id: string }): boolean {
  const is_named = PROGRAMS[name]?.test(readOf(pid, 'comm')) === true;
  return is_named && readOf(pid, name === 'init' ? 'cgroup' : 'environ').includes(server_id);
}

/** Reads a file of a process; empty if the process has ended. */
function readOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

const countZombies = () =>
  listProcesses().filter((pid) => {
    const stat = readStat(pid);
    return stat?.is_dead === true && stat.parent === process.pid;
  }).length;
