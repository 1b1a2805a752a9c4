import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { findContainerPrograms } from '../../../../src/features/servers/runtimes/container/container-programs.ts';
import { openContainers } from '../../../../src/features/servers/runtimes/container/containers.ts';
import { makeImage, WITHOUT_CONTAINERS } from '../../../support/runtimes/containers.ts';
import {
  COMBINED_RUNTIME,
  openTestRuntime,
  type StartedServer,
  type TestRuntime,
} from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('a machine that runs processes and containers', () => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(COMBINED_RUNTIME);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const SCRIPT = `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done`;
  const unrecorded = ({ server_id }: StartedServer) => ({ server_id, identity: undefined });

  test('runs each build by the runtime of its kind, and finds it again after a restart of the service', async () => {
    const process = await opened.run(SCRIPT);
    const container = await opened.run('', { build: await makeImage(opened.directory, SCRIPT) });
    expect(process.identity).not.toHaveProperty('container_shim');
    expect(container.identity).toHaveProperty('container_shim');
    for (const is_recorded of [true, false]) {
      const runtime = await opened.reopen();
      for (const server of [process, container]) {
        const known = is_recorded ? server : unrecorded(server);
        expect(await opened.observe(known, runtime)).toMatchObject({ is: 'running', identity: server.identity });
      }
      const listed = (await runtime.list()).map(({ server_id }) => server_id).sort();
      expect(listed).toEqual([process.server_id, container.server_id].sort());
    }
    const runtime = await opened.reopen();
    for (const server of [process, container]) {
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      await opened.stop(server, runtime);
      expect(await opened.waitForEnd(server, runtime)).toMatchObject({ exit_code: 7 });
      expect(await opened.output(server)).toBe('ready\nbye\n');
    }
    expect(await runtime.kill([process, container])).toEqual(new Set([process.server_id, container.server_id]));
    for (const { server_id } of [process, container]) await runtime.remove(server_id);
    expect(await runtime.list()).toEqual([]);
  });

  test('counts the processor time of both', async () => {
    const process = await opened.run('while :; do :; done');
    const container = await opened.run('', { build: await makeImage(opened.directory, 'while :; do :; done') });
    await waitFor(async () => {
      const used = await opened.runtime.readUsage?.([process, container]);
      return [process, container].every(({ server_id }) => (used?.get(server_id)?.cpu_ms ?? 0) > 50);
    }, 'their processor time');
    for (const server of [process, container]) await opened.remove(server);
  });
});

describe('a machine without containers', () => {
  const OPTIONS = { directory: '/nowhere', host: 'localhost', api_url: 'http://127.0.0.1', has_read_only_root: false };

  test('says which packages are missing', () => {
    expect(findContainerPrograms('/nowhere')).toBe(
      'its machine lacks programs that run containers, which Debian installs by "apt-get install runc tini passt nftables util-linux"',
    );
  });

  test('says that its operator turned containers off', () => {
    const why_missing = 'its operator turned containers off';
    expect(openContainers({ ...OPTIONS, is_on: false, events: { emit() {} } })).toEqual({ why_missing });
  });
});
