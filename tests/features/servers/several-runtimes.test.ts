import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { combineRuntimes } from '../../../src/features/servers/runtimes/combined-runtime.ts';
import type { Isolation, Runtime } from '../../../src/features/servers/runtimes/runtime.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { killAtOnce } from '../../support/matchmaker/simulated-machine.ts';
import { NO_DISK_LIMIT, openTestRuntime, PROCESS_RUNTIMES, type TestRuntime } from '../../support/runtimes/runtimes.ts';
import { waitFor } from '../../support/wait.ts';

const FULL: Isolation = { level: 'full', missing: [] };
const OFF: Isolation = { level: 'off', missing: [] };
const PARTIAL: Isolation = { level: 'partial', missing: ['ports', 'signals'] };

describe('a machine with several runtimes', () => {
  let opened: TestRuntime;
  let events: ServiceEvent[];
  beforeAll(async () => {
    opened = await openTestRuntime(PROCESS_RUNTIMES[0]);
    events = [];
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Combines processes with containers, which are processes here as well, with changes to them. */
  function combine(processes: Partial<Runtime>, containers: Partial<Runtime>): Runtime {
    const images = { kinds: ['docker_image', 'oci_bundle'], ...containers } as const;
    const runtimes = [processes, images].map((changes) => ({ ...opened.runtime, ...changes }));
    return combineRuntimes(runtimes, { emit: (event) => void events.push(event) });
  }

  const OF_IMAGES = ['ports (docker_image, oci_bundle)', 'signals (docker_image, oci_bundle)'];
  test.each<
    [what: string, processes: Isolation | undefined, containers: Isolation | undefined, of_both: Isolation | undefined]
  >([
    ['full, if both are', FULL, FULL, FULL],
    ['partial, if that of containers is', FULL, PARTIAL, { level: 'partial', missing: OF_IMAGES }],
    ['partial in the same way, if both are', PARTIAL, PARTIAL, PARTIAL],
    ['off, if that of processes is', OFF, PARTIAL, OFF],
    ['that of processes, until an engine answers', FULL, undefined, FULL],
    ['unknown, if both are', undefined, undefined, undefined],
  ])('has an isolation that is %s', (_, processes, containers, of_both) => {
    expect(combine({ isolation: processes }, { isolation: containers }).isolation).toEqual(of_both);
  });

  test('has the isolation of an engine that answers later', () => {
    let isolation: Isolation | undefined;
    const engine = {
      ...opened.runtime,
      get isolation() {
        return isolation;
      },
    };
    const runtime = combineRuntimes([engine], { emit() {} });
    expect(runtime.isolation).toBeUndefined();
    isolation = PARTIAL;
    expect(runtime.isolation).toEqual(PARTIAL);
  });

  test('kills the servers of all runtimes at once, so that one that hangs delays no other', async () => {
    const { promise: containers_were_killed, resolve } = Promise.withResolvers<void>();
    const kill =
      (before: () => Promise<void> | void): Runtime['kill'] =>
      async (servers, onGone) => {
        await before();
        return await killAtOnce(servers, onGone);
      };
    const runtime = combine({ kill: kill(() => containers_were_killed) }, { kill: kill(resolve) });
    const server = { server_id: crypto.randomUUID(), identity: undefined };
    expect(await runtime.kill([server])).toEqual(new Set([server.server_id]));
  });

  test('reports a server as gone while another runtime kills its own', async () => {
    const server = await opened.run('exec sleep 600');
    const other = { server_id: crypto.randomUUID(), identity: undefined };
    const { promise: held, resolve } = Promise.withResolvers<void>();
    const { promise: first_gone, resolve: onGone } = Promise.withResolvers<string>();
    const kill: Runtime['kill'] = (servers, note) => held.then(() => killAtOnce(servers, note));
    const runtime = combine({}, { kill });
    await runtime.observe([server]);
    const killed = runtime.kill([server, other], onGone);
    expect(await first_gone).toBe(server.server_id);
    resolve();
    expect(await killed).toEqual(new Set([server.server_id, other.server_id]));
    await opened.remove(server);
  });

  test('observes the servers of the others if one runtime fails, and reports none absent that it may have', async () => {
    const server = await opened.run('exec sleep 600');
    const unknown = { server_id: crypto.randomUUID(), identity: undefined };
    const fail = async () => {
      throw new Error('an answer that is not understood');
    };
    const broken_second = combine({}, { observe: fail });
    const observed = await broken_second.observe([server, unknown]);
    expect([...observed].map(([server_id, { is }]) => [server_id, is])).toEqual([[server.server_id, 'running']]);
    const broken_first = combine({ observe: fail }, {});
    expect((await broken_first.observe([server, unknown])).get(server.server_id)?.is).toBe('running');
    expect((await broken_first.observe([server, unknown])).has(unknown.server_id)).toBe(false);
    await expect(broken_first.stop(unknown)).rejects.toThrow('the runtime of the server is unknown');
    expect(events.splice(0).map((event) => ('step' in event ? event.step : ''))).toEqual(['observe', 'observe']);
    await opened.remove(server);
  });

  test('counts what servers use and have on the disk, also if one runtime fails, which is reported once', async () => {
    const server = await opened.run('echo x > "$HOME/file"; while :; do :; done');
    let is_broken = true;
    const fail = async () => {
      if (is_broken) throw new Error('an answer that is not understood');
      return new Map();
    };
    const runtime = combine({}, { readUsage: fail, measureDisk: fail });
    await waitFor(
      async () => ((await runtime.readUsage?.([server]))?.get(server.server_id)?.cpu_ms ?? 0) > 0,
      'its processor time',
    );
    const measured = await waitFor(async () => {
      const one = (await runtime.measureDisk?.([server], NO_DISK_LIMIT))?.get(server.server_id);
      return one !== undefined && one.files > 0 && one;
    }, 'its file');
    expect(measured.files).toBe(1);
    const cause = expect.objectContaining({ message: 'an answer that is not understood' });
    expect(events).toEqual([
      { event: 'runtime_failed', step: 'usage', kinds: ['docker_image', 'oci_bundle'], cause },
      { event: 'runtime_failed', step: 'disk', kinds: ['docker_image', 'oci_bundle'], cause },
    ]);
    is_broken = false;
    await runtime.readUsage?.([server]);
    is_broken = true;
    await runtime.readUsage?.([server]);
    expect(events).toHaveLength(3);
    await opened.remove(server);
  });
});
