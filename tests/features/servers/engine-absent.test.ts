import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openEngine } from '../../../src/features/servers/runtimes/engine/engine.ts';
import { EngineClient } from '../../../src/features/servers/runtimes/engine/engine-client.ts';
import type { Runtime, StartOrder } from '../../../src/features/servers/runtimes/runtime.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { makeDataDirectory } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

/** A user that owns nothing. */
const USER_ID = 64_323;

describe('a container engine that is configured and cannot be used', () => {
  let place: string;
  beforeAll(async () => {
    place = await makeDataDirectory();
  });
  afterAll(() => rm(place, { recursive: true }));

  async function open(socket: string, { is_on = true, is_root = true } = {}) {
    const events: ServiceEvent[] = [];
    const directory = join(place, crypto.randomUUID());
    await mkdir(directory);
    const runtime = await openEngine({
      is_on,
      is_root,
      has_read_only_root: false,
      isolation: 'on',
      engine_url: `unix://${socket}`,
      directory,
      host: 'localhost',
      api_url: 'http://127.0.0.1:8080',
      node_id: 'here',
      events: { emit: (event) => void events.push(event) },
    });
    return { runtime, events, directory };
  }

  test('is reported at the start, with what to do, and does not end the service', async () => {
    const socket = join(place, 'nowhere');
    const { runtime, events } = await open(socket);
    const reason = `there is no socket at ${socket}: start Docker or Podman, or correct MUSTER_CONTAINER_ENGINE`;
    expect(events).toEqual([{ event: 'container_engine_unavailable', engine: `unix://${socket}`, reason }]);
    expect(runtime).toMatchObject({ kinds: ['docker_image', 'oci_bundle'] });
  });

  test('leaves its servers unreachable, and knows those that were never started', async () => {
    const { runtime, directory } = await open(join(place, 'nowhere'));
    const started = { server_id: crypto.randomUUID(), identity: undefined };
    const never = { server_id: crypto.randomUUID(), identity: undefined };
    await mkdir(join(directory, started.server_id));
    const observed = await (runtime as Runtime).observe([started, never]);
    expect(observed.get(started.server_id)).toMatchObject({ is: 'unreachable', for_ms: expect.any(Number) });
    expect(observed.get(never.server_id)).toEqual({ is: 'absent' });
    expect(await (runtime as Runtime).kill([started, never])).toEqual(new Set([never.server_id]));
    expect(await (runtime as Runtime).readUsage?.([started, never])).toEqual(new Map());
    await expect((runtime as Runtime).remove(started.server_id)).rejects.toThrow('there is no socket at');
  });

  /** Starts a container of a build with this configuration. Returns the order. */
  async function startIn(directory: string, runtime: Runtime, config: object): Promise<StartOrder> {
    const build = join(directory, 'build');
    await mkdir(build);
    const text = JSON.stringify({ ociVersion: '1.0.2', process: { args: ['true'], ...config } });
    await Bun.write(join(build, 'config.json'), text);
    const order = {
      server_id: crypto.randomUUID(),
      resources: { cpu: 100, memory: 64 },
      ports: {},
      arguments: [],
      environment: {},
      build: {
        game_id: crypto.randomUUID(),
        kind: 'oci_bundle' as const,
        sha256: undefined,
        directory: build,
        command: [],
      },
      build_id: crypto.randomUUID(),
    } satisfies StartOrder;
    await runtime.start(order);
    return order;
  }

  test('lets new servers wait, and does not say where it is', async () => {
    const { runtime, directory } = await open(join(place, 'nowhere'));
    const build = join(directory, 'build');
    await mkdir(build);
    await Bun.write(join(build, 'config.json'), JSON.stringify({ ociVersion: '1.0.2', process: { args: ['true'] } }));
    const order = {
      server_id: crypto.randomUUID(),
      resources: { cpu: 100, memory: 64 },
      ports: {},
      arguments: [],
      environment: {},
      build: {
        game_id: crypto.randomUUID(),
        kind: 'oci_bundle' as const,
        sha256: undefined,
        directory: build,
        command: [],
      },
      build_id: crypto.randomUUID(),
    } satisfies StartOrder;
    for (const _ of ['at first', 'again']) {
      const refused = await (runtime as Runtime).start(order).catch((error: unknown) => error);
      expect(refused).toMatchObject({
        code: 'SERVERS_ENGINE_UNAVAILABLE',
        message: 'The container engine of the machine does not answer. The server starts once the engine answers.',
      });
      const seen = await (runtime as Runtime).observe([{ server_id: order.server_id, identity: undefined }]);
      expect(seen.get(order.server_id)).toEqual({ is: 'absent' });
    }
  });

  test('hangs, holds up nothing, and is noticed when it answers again', async () => {
    const socket = join(place, 'hanging');
    let is_hanging = true;
    const engine = Bun.serve({
      unix: socket,
      fetch: () => (is_hanging ? new Promise<never>(() => {}) : Response.json([])),
    });
    const { runtime, directory } = await open(socket);
    const { observe, kill, readUsage } = runtime as Runtime;
    const server = { server_id: crypto.randomUUID(), identity: undefined };
    await mkdir(join(directory, server.server_id));
    // Each of them would wait for the engine for 10 s or more.
    for (let step = 0; step < 30; step += 1) {
      expect((await observe([server])).get(server.server_id)).toMatchObject({ is: 'unreachable' });
      expect(await kill([server])).toEqual(new Set());
      expect(await readUsage?.([server])).toEqual(new Map());
    }
    is_hanging = false;
    const isAbsent = async () => (await observe([server])).get(server.server_id)?.is === 'absent';
    await waitFor(isAbsent, 'the engine to be asked again', 120_000);
    await engine.stop(true);
  }, 240_000);

  test('fails to start a container late, which the log of the service explains, and not that of the server', async () => {
    const socket = join(place, 'late');
    const { promise: is_late, resolve: answer } = Promise.withResolvers<void>();
    const engine = Bun.serve({
      unix: socket,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === '/_ping' || pathname === '/containers/json') return Response.json([]);
        await is_late;
        return Response.json({ message: 'no space in /var/lib/engine' }, { status: 500 });
      },
    });
    const { runtime, directory, events } = await open(socket);
    const { server_id } = await startIn(directory, runtime as Runtime, {});
    answer();
    const seen = await waitFor(async () => {
      const one = (await (runtime as Runtime).observe([{ server_id, identity: undefined }])).get(server_id);
      return one?.is === 'ended' && one;
    }, 'its end');
    expect(seen).toMatchObject({ reason: 'the machine could not start the server: tell the operator of the service' });
    const cause = expect.objectContaining({ message: 'the container engine says: no space in /var/lib/engine' });
    expect(events).toEqual([{ event: 'server_step_failed', server_id, step: 'start', cause }]);
    await engine.stop(true);
  }, 120_000);

  test('tells the developer what is wrong with a build', async () => {
    const { runtime, directory } = await open(join(place, 'nowhere'));
    const refused = await rejectionOf(ServiceError, startIn(directory, runtime as Runtime, { cwd: '/proc/self' }));
    expect(refused.message).toContain(
      'the build starts in "/proc/self": use an absolute path outside of /proc, /sys and /dev',
    );
  });

  test('accepts a connection and does not answer', async () => {
    const socket = join(place, 'deaf');
    const listener = Bun.listen({ unix: socket, socket: { data() {} } });
    const client = new EngineClient(socket);
    await expect(client.call({ method: 'GET', path: '/_ping', timeout_ms: 50 })).rejects.toThrow(
      'the container engine took too long to answer /_ping',
    );
    expect(client.unreachable_since).toBeNumber();
    listener.stop(true);
  });

  test.skipIf(process.getuid?.() !== 0)('belongs to another user', async () => {
    const socket = join(place, 'closed');
    const listener = Bun.listen({ unix: socket, socket: { data() {} } });
    await chmod(socket, 0o660);
    // Other users may not read the sources or start Bun where it is.
    const runtimes = join(import.meta.dir, '../../../src/features/servers/runtimes');
    await Bun.build({ entrypoints: [join(runtimes, 'engine/engine-client.ts')], target: 'bun', outdir: place });
    await chmod(place, 0o755);
    const bun = join(place, 'bun');
    await copyFile(process.execPath, bun, constants.COPYFILE_FICLONE);
    const script = `import { EngineClient } from './engine-client.js';
        const request = { method: 'GET', path: '/_ping' };
        await new EngineClient('${socket}').call(request).catch(({ message }) => console.log(message));`;
    await Bun.write(join(place, 'call.js'), script);
    const child = Bun.spawn([bun, 'call.js'], { uid: USER_ID, gid: USER_ID, cwd: place, env: {}, stdout: 'pipe' });
    expect((await new Response(child.stdout).text()).trim()).toBe(
      `Muster may not use the socket ${socket}: check what keeps root out (SELinux, AppArmor or a user namespace)`,
    );
    listener.stop(true);
  });

  test('is not used without root, because servers that are processes could use it, too', async () => {
    const why_missing = 'a container engine needs a service that runs as root';
    expect((await open(join(place, 'nowhere'), { is_root: false })).runtime).toEqual({ why_missing });
  });

  test('is not opened if containers are turned off', async () => {
    expect((await open(join(place, 'nowhere'), { is_on: false })).runtime).toBeUndefined();
  });
});
