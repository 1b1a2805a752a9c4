import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createProcessTrees, MARK } from '../../../../src/features/servers/runtimes/linux/process-trees.ts';
import { findProcessesByEnvironment } from '../../../../src/platform/system/processes.ts';
import { IMAGE_USER, makeImage, openContainers, WITHOUT_CONTAINERS } from '../../../support/runtimes/containers.ts';
import {
  CONTAINER_RUNTIME,
  NO_DISK_LIMIT,
  openTestRuntime,
  type TestRuntime,
} from '../../../support/runtimes/runtimes.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

if (WITHOUT_CONTAINERS !== undefined) console.log(`Not tried, because ${WITHOUT_CONTAINERS}: containers.`);

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('a server in a container', () => {
  let opened: TestRuntime;
  beforeAll(async () => {
    process.env.CANARY_SECRET = 'canary-1';
    opened = await openTestRuntime(CONTAINER_RUNTIME);
  });
  afterAll(async () => {
    delete process.env.CANARY_SECRET;
    await opened[Symbol.asyncDispose]();
  });

  test('has the environment of its image, the given one over it, and nothing of the service', async () => {
    const build = await makeImage(opened.directory, '', {
      args: ['/bin/env'],
      env: ['PATH=/bin', 'HOME=/home', 'MODE=image'],
    });
    const environment = { MODE: 'given', SERVICE_TOKEN: 'a=b' };
    expect((await opened.runOnce('', { build, environment })).split('\n').sort()).toEqual(
      ['', 'HOME=/home', 'MODE=given', 'PATH=/bin', 'SERVICE_TOKEN=a=b'].sort(),
    );
  });

  test('is the user of its image, without capabilities and with a filter of system calls', async () => {
    expect(await opened.runOnce('id; pwd; cat /proc/self/status')).toMatch(
      new RegExp(
        `^uid=${IMAGE_USER} gid=${IMAGE_USER}.*\n/game\n.*CapPrm:\t0{16}\nCapEff:\t0{16}\nCapBnd:\t0{16}.*NoNewPrivs:\t1\nSeccomp:\t2\n`,
        's',
      ),
    );
  });

  test('is in the additional groups of its image, which may open their files', async () => {
    const user = { uid: IMAGE_USER, gid: IMAGE_USER, additionalGids: [2_001, 2_002] };
    const build = await makeImage(opened.directory, 'id -G; cat /game/secret', { user });
    const secret = join(build.directory, 'rootfs/game/secret');
    await Bun.write(secret, 'of the group\n');
    await chown(secret, 0, 2_002);
    await chmod(secret, 0o040);
    expect(await opened.runOnce('', { build })).toBe(`${IMAGE_USER} 2001 2002\nof the group\n`);
  });

  test('sees its own processes, files and network devices only', async () => {
    const seen = await opened.runOnce('cat /proc/1/comm /proc/[0-9]*/comm; ls /; ls /sys/class/net; cat /etc/hosts');
    expect(seen).toStartWith('init\ninit\nsh\nbin\ndev\netc\ngame\nproc\nsys\ntmp\neth0\nlo\n127.0.0.1 localhost');
  });

  const REFUSED = [
    ['mount -t tmpfs none /tmp', 'permission denied'],
    ['unshare -r true', 'Operation not permitted'],
    ['unshare -n true', 'Operation not permitted'],
    ['echo 1 > /proc/sys/kernel/panic', /Read-only file system|Permission denied/],
    ['echo x > /etc/hosts', /Read-only file system|Permission denied/],
    ['cat /proc/keys', /^$/],
    ['ls /sys/firmware | head -n 1', /^$/],
    ['echo 1 > /proc/irq/default_smp_affinity', /Read-only file system|Permission denied/],
    ['dd if=/dev/mem bs=1 count=1', /No such file|can't open/],
  ] satisfies [string, string | RegExp][];
  test.each(REFUSED)('cannot do this, also as root: %s', async (script, refusal) => {
    for (const user of [
      { uid: IMAGE_USER, gid: IMAGE_USER },
      { uid: 0, gid: 0 },
    ]) {
      const build = await makeImage(opened.directory, script, { user });
      expect(await opened.runOnce('', { build })).toMatch(refusal);
    }
  });

  test('writes to its own copy of the files of its build', async () => {
    const script = 'cat /game/file 2>/dev/null; echo mine > /game/file; cat /game/file';
    const build = await makeImage(opened.directory, script, { user: { uid: 0, gid: 0 } });
    expect(await opened.runOnce('', { build })).toBe('mine\n');
    expect(await opened.runOnce('', { build })).toBe('mine\n');
    expect(existsSync(join(build.directory, 'rootfs/game/file'))).toBe(false);
  });

  test('that takes more memory than it may is killed', async () => {
    const order = { resources: { cpu: 1_000, memory: 32 } };
    const server = await opened.run('x=$(yes | head -c 100000000); echo survived', order);
    expect(await opened.waitForEnd(server)).toMatchObject({
      exit_signal: 'SIGKILL',
      reason: 'it exceeded its memory of 32 MiB',
    });
    expect(await opened.output(server)).toBe('');
  });

  test('starts a limited number of processes', async () => {
    const script = 'n=0; while [ $n -lt 600 ]; do sleep 600 & n=$((n+1)); done; echo all';
    const server = await opened.run(script);
    await opened.waitForEnd(server);
    expect(await opened.output(server)).toBe('');
    expect(await opened.output(server, 'std_err')).toContain("can't fork");
  });

  test('gets no more processor time than it may', async () => {
    const order = { resources: { cpu: 100, memory: 64 } };
    const began = performance.now();
    const server = await opened.run('while :; do :; done', order);
    const used = await waitFor(async () => {
      const used_ms = await opened.readProcessorTime(server);
      return used_ms > 300 && used_ms;
    }, 'it to use its processor time');
    // A tenth of the time, and a half of that for the periods at both ends.
    expect(used).toBeLessThan((performance.now() - began) * 0.15 + 200);
    await opened.remove(server);
  });

  test('has on the disk what it wrote, also deleted files that are open, and not what is in memory', async () => {
    const script = `
      dd if=/dev/zero of=/tmp/memory bs=1M count=8
      dd if=/dev/zero of=/game/file bs=1M count=2
      exec 4> /game/open; rm /game/open; dd if=/dev/zero bs=1M count=1 >&4
      # Named like what is in memory.
      mkdir /tmpx; exec 5> /tmpx/file; rm /tmpx/file; dd if=/dev/zero bs=1M count=1 >&5
      exec 6> /memfd:file; rm /memfd:file; dd if=/dev/zero bs=1M count=1 >&6
      exec 7> /tmp/file; rm /tmp/file; dd if=/dev/zero bs=1M count=1 >&7
      echo written; sleep 600`;
    const build = await makeImage(opened.directory, script, { user: { uid: 0, gid: 0 } });
    const server = await opened.run('', { build });
    await waitFor(async () => (await opened.output(server)).includes('written'), 'the files');
    const measured = await opened.runtime.measureDisk?.([server], NO_DISK_LIMIT);
    expect(Math.floor((measured?.get(server.server_id)?.bytes ?? 0) / 1024 ** 2)).toBe(5);
  });

  test('has no process in the server that a variable of its environment names', async () => {
    const other_id = crypto.randomUUID();
    const server = await opened.run(`${MARK}=${other_id} sleep 600 & echo started; wait`);
    await waitFor(async () => (await opened.output(server)).includes('started'), 'its process');
    const listed = await waitFor(() => {
      const pids = findProcessesByEnvironment(`${MARK}=${other_id}`);
      return pids.length > 0 && pids;
    }, 'the process to have the variable');
    expect(listed).toHaveLength(1);
    const trees = await createProcessTrees()([{ server_id: other_id, process: undefined, user_id: undefined }]);
    expect(trees).toEqual(new Map([[other_id, []]]));
    await opened.remove(server);
  });

  test('writes to memory only if containers are read-only', async () => {
    const options = { host: 'localhost', api_url: 'http://127.0.0.1:8080', has_read_only_root: true };
    await using closed = await openTestRuntime({
      ...CONTAINER_RUNTIME,
      open: (directory) => openContainers(directory, options),
    });
    const script = 'echo a > /game/file; echo b > /tmp/file; cat /tmp/file';
    const build = await makeImage(closed.directory, script, { user: { uid: 0, gid: 0 } });
    const server = await closed.run('', { build });
    await closed.waitForEnd(server);
    expect(await closed.output(server)).toBe('b\n');
    expect(await closed.output(server, 'std_err')).toContain('Read-only file system');
  });

  test('has a copy of the files of its build where an overlay cannot be mounted: over another overlay', async () => {
    const lower = await makeDataDirectory();
    const layers = ['upper', 'work', 'merged'].map((name) => join(lower, name));
    await Promise.all(layers.map((layer) => mkdir(layer)));
    const [upper, work, merged = ''] = layers;
    const overlay = `lowerdir=${opened.directory},upperdir=${upper},workdir=${work}`;
    // An upper directory on an overlay is not possible.
    await Bun.$`mount -t overlay overlay -o ${overlay} ${merged}`;
    try {
      await using above = await openTestRuntime({ ...CONTAINER_RUNTIME, open: () => CONTAINER_RUNTIME.open(merged) });
      const server = await above.run('cat /proc/mounts | head -n 1; echo mine > /tmp/file; cat /tmp/file');
      await above.waitForEnd(server);
      expect(await above.output(server)).not.toContain('upperdir=upper');
      expect(await above.output(server)).toEndWith('mine\n');
    } finally {
      await Bun.$`umount ${merged}`;
      await rm(lower, { recursive: true });
    }
  });

  test.each([
    ['network', 'nft'],
    ['OCI runtime', 'oci_runtime'],
  ] as const)('whose %s fails late has ended, with the cause in the log of the service only', async (_, program) => {
    const failures: [string, unknown][] = [];
    const script = join(opened.directory, program);
    await Bun.write(script, '#!/bin/sh\nsleep 6; echo "/var/lib/muster is broken" >&2; exit 1\n');
    await chmod(script, 0o755);
    await using failing = await openTestRuntime({
      ...CONTAINER_RUNTIME,
      open: (directory) =>
        openContainers(directory, {
          host: 'localhost',
          api_url: 'http://127.0.0.1:8080',
          replaced: { [program]: script },
          onStartFailed: (server_id, cause) => void failures.push([server_id, cause]),
        }),
    });
    const server = await failing.run('echo started');
    const end = await failing.waitForEnd(server);
    const reason = 'the machine could not start the server: tell the operator of the service';
    expect(end).toEqual({ is: 'ended', exit_code: null, exit_signal: null, reason });
    await failing.observe(server);
    const cause = expect.objectContaining({
      message: 'the container could not be set up: /var/lib/muster is broken',
    });
    expect(failures).toEqual([[server.server_id, cause]]);
    expect(await failing.output(server, 'std_err')).toBe('');
  });

  test('cannot start in a directory of the kernel', async () => {
    const build = await makeImage(opened.directory, '', { cwd: '/proc/self/fd/7' });
    const order = await opened.orderOf('', { build });
    await expect(opened.start(order)).rejects.toThrow('use an absolute path outside of /proc, /sys and /dev');
    expect(await opened.observe({ server_id: order.server_id, identity: undefined })).toMatchObject({ is: 'ended' });
  });
});
