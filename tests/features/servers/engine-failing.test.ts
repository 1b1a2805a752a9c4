import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineClient } from '../../../src/features/servers/runtimes/engine/engine-client.ts';
import { LABELS } from '../../../src/features/servers/runtimes/engine/engine-container.ts';
import { EngineContainers } from '../../../src/features/servers/runtimes/engine/engine-containers.ts';
import { openEngineRuntime } from '../../../src/features/servers/runtimes/engine/engine-runtime.ts';
import type { Runtime, ServerHandle, StartOrder } from '../../../src/features/servers/runtimes/runtime.ts';
import type { MaybePromise } from '../../../src/platform/maybe-promise.ts';
import { makeDataDirectory } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const MACHINE_ID = 'here';
const USED = { cpu_stats: { cpu_usage: { total_usage: 5_000_000 } }, memory_stats: { usage: 1_024 } };
const refuse = (status: number, message = 'it fails') => Response.json({ message }, { status });

/** A container of the engine, by what the engine answers about it. */
interface FakeContainer {
  state: 'running' | 'exited';
  logs?: () => MaybePromise<Response>;
  inspect?: (query: URLSearchParams) => MaybePromise<Response | undefined>;
  kill?: () => Response;
  wait?: () => MaybePromise<Response>;
  stats?: object;
}

describe('a container engine that fails', () => {
  let place: string;
  let stack = new AsyncDisposableStack();
  beforeAll(async () => {
    place = await makeDataDirectory();
  });
  afterEach(async () => {
    await stack.disposeAsync();
    stack = new AsyncDisposableStack();
  });
  afterAll(() => rm(place, { recursive: true }));

  /** Opens an engine with these containers, and a runtime that uses it. `answer` comes before the usual answers. */
  async function open(answer: (path: string) => MaybePromise<Response | undefined> = () => undefined) {
    const containers = new Map<string, FakeContainer>();
    const calls: string[] = [];
    const describeOne = (server_id: string, { state }: FakeContainer) => ({
      Id: server_id,
      Config: { Labels: { [LABELS.machine]: MACHINE_ID } },
      State: { Running: state === 'running', ExitCode: 0, OOMKilled: false },
      HostConfig: { Memory: 1_024 },
    });
    const socket = join(place, crypto.randomUUID());
    const engine = Bun.serve({
      unix: socket,
      async fetch(request) {
        const { pathname, searchParams } = new URL(request.url);
        const own = await answer(pathname);
        if (own) return own;
        if (pathname === '/_ping') return new Response('OK');
        if (pathname === '/containers/json') {
          const all = [...containers].map(([server_id, { state }]) => ({
            Labels: { [LABELS.server]: server_id },
            State: state,
          }));
          return Response.json(all);
        }
        const [, server_id = '', verb = ''] = /^\/containers\/muster-(.*)\/(.*)$/.exec(pathname) ?? [];
        const container = containers.get(server_id);
        calls.push(verb);
        if (!container) return refuse(404);
        if (verb === 'logs') return (await container.logs?.()) ?? new Response('');
        if (verb === 'kill' && container.kill) return container.kill();
        if (verb === 'wait' && container.wait) return await container.wait();
        if (verb === 'stats') return Response.json(container.stats ?? {});
        if (verb === 'json') {
          return (await container.inspect?.(searchParams)) ?? Response.json(describeOne(server_id, container));
        }
        return Response.json({});
      },
    });
    stack.defer(() => engine.stop(true));
    const directory = join(place, crypto.randomUUID());
    await mkdir(directory);
    const client = new EngineClient(socket);
    const failures: { server_id: string; step: string; cause: unknown }[] = [];
    const runtime = openEngineRuntime({
      client,
      directory,
      host: 'localhost',
      api_url: 'http://127.0.0.1:8080',
      node_id: MACHINE_ID,
      has_read_only_root: false,
      is_isolation_required: false,
      onFailed: (server_id, step, cause) => void failures.push({ server_id, step, cause }),
    });
    async function add(container: FakeContainer): Promise<ServerHandle> {
      const server_id = crypto.randomUUID();
      await mkdir(join(directory, server_id));
      for (const stream of ['std_out', 'std_err']) await Bun.write(join(directory, server_id, stream), '');
      containers.set(server_id, container);
      return { server_id, identity: { container: server_id } };
    }
    return { runtime, client, add, containers, calls, failures, directory };
  }

  async function observe(runtime: Runtime, server: ServerHandle) {
    return (await runtime.observe([server])).get(server.server_id);
  }

  /** Begins a start whose container is being set up for longer than a start takes. Returns the order. */
  async function startLate({ runtime, directory }: { runtime: Runtime; directory: string }): Promise<StartOrder> {
    const build = join(directory, '../build');
    const config = { ociVersion: '1.0.2', process: { args: ['true'] } };
    await Bun.write(join(build, 'config.json'), JSON.stringify(config));
    const order: StartOrder = {
      server_id: crypto.randomUUID(),
      resources: { cpu: 100, memory: 64 },
      ports: {},
      arguments: [],
      environment: {},
      build: { game_id: crypto.randomUUID(), kind: 'oci_bundle', sha256: undefined, directory: build, command: [] },
      build_id: crypto.randomUUID(),
    };
    expect(await runtime.start(order)).toMatchObject({ is: 'pending' });
    return order;
  }

  test.each([
    ['fails', () => refuse(500), 1],
    ['ends at once', () => new Response(''), 0],
  ])('has the log of a running container read again after a pause if it %s', async (_, logs, reports) => {
    const { runtime, add, calls, failures } = await open();
    const server = await add({ state: 'running', logs });
    let rounds = 0;
    // As the loop of servers does.
    runtime.onChange(() => {
      rounds += 1;
      void runtime.observe([server]);
    });
    await runtime.observe([server]);
    await waitFor(() => rounds > 0, 'the end of the copying');
    await Bun.sleep(500);
    expect([rounds, calls.filter((call) => call === 'logs').length]).toEqual([1, 1]);
    await waitFor(async () => {
      await runtime.observe([server]);
      return rounds > 1;
    }, 'the log to be read again');
    expect(failures.map(({ server_id, step }) => [server_id, step])).toEqual(
      Array(reports).fill([server.server_id, 'collect']),
    );
  });

  test('holds up the observation of no container that has ended, and its end for the last output of all together', async () => {
    const { runtime, add } = await open();
    const servers = await Promise.all(
      Array.from({ length: 24 }, () => add({ state: 'exited', logs: () => new Promise<never>(() => {}) })),
    );
    const began = performance.now();
    const observed = await runtime.observe(servers);
    expect([...observed.values()]).toEqual(Array(24).fill({ is: 'ended', exit_code: 0, exit_signal: null }));
    expect(performance.now() - began).toBeLessThan(3_000);
    expect((await runtime.kill(servers)).size).toBe(24);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  test('and hangs while it describes a container that has ended is asked for it once, and holds up no other', async () => {
    const { runtime, add } = await open();
    const { promise: held, resolve } = Promise.withResolvers<undefined>();
    let descriptions = 0;
    const inspect = () => {
      descriptions += 1;
      return held;
    };
    const stuck = await add({ state: 'exited', inspect });
    const others = [await add({ state: 'exited' }), await add({ state: 'running' })];
    for (let time = 0; time < 3; time += 1) {
      const seen = [...(await runtime.observe([stuck, ...others])).values()].map(({ is }) => is);
      expect(seen.toSorted()).toEqual(['ended', 'running', 'unreachable']);
    }
    expect(descriptions).toBe(1);
    resolve(undefined);
    await waitFor(async () => (await observe(runtime, stuck))?.is === 'ended', 'its description');
  }, 60_000);

  test('and is back kills no container that was unreachable until then', async () => {
    let is_away = true;
    const opened = await open(() => (is_away ? new Promise<never>(() => {}) : undefined));
    const { runtime, client, add, calls } = opened;
    const server = await add({ state: 'running' });
    client.unreachable_since = performance.now() - 5_000;
    const seen = await observe(runtime, server);
    expect(seen?.is === 'unreachable' && seen.for_ms).toBeGreaterThanOrEqual(5_000);
    is_away = false;
    client.unreachable_since = undefined;
    expect(await runtime.kill([server])).toEqual(new Set());
    expect(calls).not.toContain('kill');
    expect((await observe(runtime, server))?.is).toBe('running');
  }, 60_000);

  test('and is back kills a container that is not observed any more, since no server is recorded for it', async () => {
    let is_away = true;
    const { runtime, client, add, calls } = await open(() => (is_away ? new Promise<never>(() => {}) : undefined));
    const leftover = await add({ state: 'running' });
    client.unreachable_since = performance.now();
    await observe(runtime, leftover);
    is_away = false;
    client.unreachable_since = undefined;
    expect(await runtime.kill([leftover])).toEqual(new Set());
    await runtime.kill([leftover]);
    expect(calls).toContain('kill');
  }, 60_000);

  test('has the last output of a container copied before its end counts as complete', async () => {
    const { runtime, add, directory } = await open();
    const line = Buffer.from(`${new Date().toISOString()} bye\n`);
    const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, line.length]);
    let reads = 0;
    const server = await add({
      state: 'exited',
      // The first copy breaks off.
      logs() {
        reads += 1;
        return new Response(reads === 1 ? '' : Buffer.concat([header, line]));
      },
    });
    await runtime.observe([server]);
    await waitFor(() => reads === 1, 'the first copy');
    await runtime.kill([server]);
    expect(await Bun.file(join(directory, server.server_id, 'std_out')).text()).toBe('bye\n');
  });

  test('while a container is set up that is to end: that is no failure of the server', async () => {
    const opened = await open((path) => {
      if (path === '/version' || path === '/info') return Response.json({});
      if (path === '/images/json') return Response.json([]);
      return path === '/images/create' ? new Promise<never>(() => {}) : undefined;
    });
    const { server_id } = await startLate(opened);
    expect(await opened.runtime.kill([{ server_id, identity: undefined }])).toEqual(new Set([server_id]));
    expect(await observe(opened.runtime, { server_id, identity: undefined })).toEqual({
      is: 'ended',
      exit_code: null,
      exit_signal: null,
    });
    expect(opened.failures).toEqual([]);
  });

  test('has the reason of a failed start kept if the disk is too full for it', async () => {
    const { promise: is_late, resolve: answer } = Promise.withResolvers<void>();
    const opened = await open(async (path) => {
      if (path === '/_ping' || path === '/containers/json') return undefined;
      await is_late;
      return refuse(500);
    });
    const { server_id } = await startLate(opened);
    // The reason cannot be written to its file.
    await mkdir(join(opened.directory, server_id, 'failed'));
    answer();
    const seen = await waitFor(async () => {
      const one = await observe(opened.runtime, { server_id, identity: undefined });
      return one?.is === 'ended' && one;
    }, 'its end');
    expect(seen.reason).toBe('the machine could not start the server: tell the operator of the service');
  });

  test('describes a container after a moment, or has removed it meanwhile', async () => {
    const { runtime, add, containers } = await open();
    let reads = 0;
    const inspect = () => {
      reads += 1;
      return reads === 1 ? refuse(500) : undefined;
    };
    const ended = await add({ state: 'exited', inspect });
    expect(await observe(runtime, ended)).toMatchObject({ is: 'ended', exit_code: 0 });
    expect(reads).toBe(2);
    const removed = await add({ state: 'exited', inspect: () => refuse(404) });
    expect(await observe(runtime, removed)).toMatchObject({ is: 'ended', exit_code: null });
    expect(containers.size).toBe(2);
  });

  test('has each container unreachable since its own failure', async () => {
    const { runtime, add } = await open();
    const inspect = () => refuse(400);
    const first = await add({ state: 'exited', inspect });
    const running = await add({ state: 'running' });
    const lossOf = async (server: ServerHandle) => {
      const seen = (await runtime.observe([first, running, server])).get(server.server_id);
      if (seen?.is !== 'unreachable') throw new Error(`it is ${seen?.is}`);
      return seen.for_ms;
    };
    await lossOf(first);
    await Bun.sleep(20);
    const second = await add({ state: 'exited', inspect });
    expect(await lossOf(second)).toBeLessThan(await lossOf(first));
    expect(await observe(runtime, running)).toMatchObject({ is: 'running' });
  });

  test('has the readings of all other containers if it describes one in an unknown way, which is reported once', async () => {
    const { runtime, add, failures } = await open();
    const unknown = await add({ state: 'running', stats: { cpu_stats: 'unknown' } });
    const known = await add({ state: 'running', stats: USED });
    const ended = await add({ state: 'exited', stats: { cpu_stats: { cpu_usage: { total_usage: 0 } } } });
    for (const _ of ['at first', 'again']) {
      const used = await runtime.readUsage?.([unknown, known, ended]);
      expect(used).toEqual(new Map([[known.server_id, { cpu_ms: 5, memory_bytes: 1_024 }]]));
    }
    expect(failures).toMatchObject([{ server_id: unknown.server_id, step: 'measure' }]);
  });

  test('takes too long to count the files of one container: it counts as above its limit, and the engine is there', async () => {
    const { client, add } = await open();
    const never = (query: URLSearchParams) => (query.has('size') ? new Promise<never>(() => {}) : undefined);
    const { server_id } = await add({ state: 'running', inspect: never });
    const containers = new EngineContainers(client, MACHINE_ID);
    expect(await containers.readDiskUse(server_id, 100)).toMatchObject({ is_uncountable: true });
    expect(client.unreachable_since).toBeUndefined();
  });

  test('has a killed container that does not end in time: the engine is there', async () => {
    const { client, add } = await open();
    const { server_id } = await add({ state: 'running', wait: () => new Promise<never>(() => {}) });
    const containers = new EngineContainers(client, MACHINE_ID);
    expect(await containers.waitForEnd(server_id, 100)).toBe(false);
    expect(client.unreachable_since).toBeUndefined();
  });

  test('refuses to kill a container: why is reported once', async () => {
    const { runtime, add, failures } = await open();
    const server = await add({ state: 'running', kill: () => refuse(500, 'permission denied') });
    for (const _ of ['at first', 'again']) expect(await runtime.kill([server])).toEqual(new Set());
    expect(failures).toMatchObject([{ server_id: server.server_id, step: 'kill' }]);
    expect(String(failures[0]?.cause)).toContain('permission denied');
  });

  test('has not answered a request for a log that is given up: the engine is there', async () => {
    const { client, add } = await open();
    const { server_id } = await add({ state: 'running', logs: () => new Promise<never>(() => {}) });
    const containers = new EngineContainers(client, MACHINE_ID);
    await expect(containers.openLog(server_id, 0, AbortSignal.timeout(100))).rejects.toThrow();
    expect(client.unreachable_since).toBeUndefined();
  });

  test('does not answer at all while files are counted: nothing is known of them', async () => {
    const { client, add } = await open((path) => (path === '/_ping' ? refuse(500) : undefined));
    const { server_id } = await add({ state: 'running', inspect: () => new Promise<never>(() => {}) });
    const containers = new EngineContainers(client, MACHINE_ID);
    await expect(containers.readDiskUse(server_id, 100)).rejects.toThrow('the container engine says');
  });
});
