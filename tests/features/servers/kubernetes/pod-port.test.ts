import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { fetchBuild } from '../../../../src/commands/pod-build.ts';
import { BuildReads } from '../../../../src/features/servers/runtimes/kubernetes/build-reads.ts';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { PodUnreachable } from '../../../../src/features/servers/runtimes/kubernetes/pod-connection.ts';
import {
  openPodPort,
  type PodListener,
  type PodPort,
  type PodPortOptions,
} from '../../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import { openTcpProxy } from '../../../support/network/tcp-proxy.ts';
import { sha256 } from '../../../support/objects/digest.ts';
import { rejectionOf } from '../../../support/refusal.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

describe('kubernetes: the port for pods', () => {
  let directory: string;
  let port: PodPort;
  let has_pods = true;
  const listener: PodListener = { mayAct: () => has_pods, onChange() {} };
  const packed = createPackedBuilds();
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'muster-pod-build-'));
    await mkdir(join(directory, 'inside'));
    await Bun.write(join(directory, 'inside/data'), 'x'.repeat(3_000_000));
    await Bun.write(join(directory, 'run.sh'), 'exit 0');
    await Bun.write(join(directory, 'empty'), '');
    await chmod(join(directory, 'run.sh'), 0o755);
    const openBuild = async (id: string) => (id === 'one' ? packed.packOf(directory) : undefined);
    port = openPodPort({ pods_host: '127.0.0.1', port: 0, key: 'a key', openBuild });
    port.serve(listener);
  });
  afterAll(async () => {
    await port[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  /** Connects as a pod. Returns the socket, and whether it was accepted. */
  async function connect(server_id: string, token = port.addressOf(server_id).token) {
    const socket = new WebSocket(port.addressOf(server_id).socket, bearer(token) as unknown as string[]);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.onopen = () => resolve(true);
    socket.onclose = () => resolve(false);
    socket.onerror = () => {};
    return { socket, is_open: await promise };
  }

  test('refuses a pod without a token, with that of another server, and for what it does not know', async () => {
    const { build, token } = port.addressOf('one');
    const other = port.addressOf('two').token;
    const statuses = [
      await fetch(build),
      await fetch(build, bearer(other)),
      await fetch(build, bearer(`${token}x`)),
      await fetch(port.addressOf('two').build, bearer(other)),
      await fetch(build.replace('/build', '/other'), bearer(token)),
      await fetch(`${build}/../../one/build/more`, bearer(token)),
      await fetch(build, { method: 'POST', ...bearer(token) }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404, 503, 404, 404, 404]);
    expect((await connect('one', other)).is_open).toBe(false);
    expect(port.connectionOf('one')).toBeUndefined();
  });

  test('gives a build as a tar with its digest, the same each time', async () => {
    const { build, token } = port.addressOf('one');
    const first = await (await fetch(build, bearer(token))).bytes();
    expect(await (await fetch(build, bearer(token))).bytes()).toEqual(first);
    expect(sha256(first)).toBe((await packed.facts({ directory, game_id: 'one' })).sha256);
    const list = await Bun.$`tar -tvf - < ${new Response(first)}`.text();
    expect(list.split('\n').map((line) => [line.slice(0, 10), line.split(' ').at(-1)].join(' '))).toEqual([
      '-rw-r--r-- empty',
      'drwxr-xr-x inside/',
      '-rw-r--r-- inside/data',
      '-rwxr-xr-x run.sh',
      ' ',
    ]);
  });

  /** Opens another port, which is closed after the test. */
  const openOther = (options: Pick<PodPortOptions, 'openBuild'> & Partial<PodPortOptions>) =>
    openPodPort({ pods_host: '127.0.0.1', port: 0, key: 'a key', ...options });
  const ask = (other: PodPort, server_id: string, signal?: AbortSignal) => {
    const { build, token } = other.addressOf(server_id);
    return fetch(build, { ...bearer(token), ...(signal && { signal }) });
  };

  test('sends each server its build once at a time, and at most the maximum of builds', async () => {
    const reads = new BuildReads(2);
    const finishing = Promise.withResolvers<void>();
    async function* pack() {
      yield Buffer.from('a part');
      await finishing.promise;
    }
    await using other = openOther({ reads, openBuild: async () => pack });
    const leaving = new AbortController();
    const first = await ask(other, 'one', leaving.signal);
    const again = await ask(other, 'one');
    expect([first.status, again.status, await again.text()]).toEqual([200, 503, 'this build is being read\n']);
    const second = await ask(other, 'two');
    const third = await ask(other, 'three');
    expect([second.status, third.status, await third.text()]).toEqual([200, 503, 'too many builds are being read\n']);
    leaving.abort();
    await waitFor(() => reads.count().used === 1, 'the first to end');
    const anew = await ask(other, 'one');
    finishing.resolve();
    expect([await anew.text(), await second.text()]).toEqual(['a part', 'a part']);
    await waitFor(() => reads.count().used === 0, 'all to end');
  });

  test('answers before a build is unpacked, then gives it, and reports one that cannot be opened', async () => {
    const unpacking = Promise.withResolvers<ReturnType<typeof packed.packOf>>();
    const causes: string[] = [];
    await using other = openOther({
      openBuild: (id) => (id === 'broken' ? Promise.reject(new Error('the disk is full')) : unpacking.promise),
      onFailed: (cause) => void causes.push(String(cause)),
      open_within_ms: 20,
    });
    const early = await ask(other, 'one');
    expect([early.status, await early.text()]).toEqual([503, 'the build is being unpacked\n']);
    unpacking.resolve(packed.packOf(directory));
    expect((await ask(other, 'one')).status).toBe(200);
    const broken = await ask(other, 'broken');
    expect([broken.status, await broken.text()]).toEqual([503, 'the build cannot be read\n']);
    expect(causes).toEqual(['Error: the disk is full']);
  });

  describe('a pod that fetches its build', () => {
    const limits = { fetch_max_ms: 60_000, silent_max_ms: 60_000, answer_max_ms: 300, pause_ms: 20 };
    /** Returns the order of a pod, and the directory for its build. */
    async function prepare(other: PodPort) {
      const { build: url, token } = other.addressOf('one');
      const { sha256 } = await packed.facts({ directory, game_id: 'one' });
      return { order: { url, token, sha256 }, into: await makeDataDirectory() };
    }

    test('waits for one that takes longer to unpack than Muster may take to answer', async () => {
      let unpacked_at = Number.POSITIVE_INFINITY;
      const openBuild = async () => {
        unpacked_at = Math.min(unpacked_at, performance.now() + 2 * limits.answer_max_ms);
        if (performance.now() < unpacked_at) await new Promise(() => {});
        return packed.packOf(directory);
      };
      await using other = openOther({ open_within_ms: 20, openBuild });
      const { order, into } = await prepare(other);
      expect(await fetchBuild(order, into, limits)).toBeUndefined();
      expect(await Bun.file(join(into, 'run.sh')).text()).toBe('exit 0');
    });

    test('disconnects from a Muster that sends nothing, and asks another one', async () => {
      await using proxy = await openTcpProxy({
        host: '127.0.0.1',
        port: Number(new URL(port.addressOf('').build).port),
      });
      const { order, into } = await prepare(port);
      const url = new URL(order.url);
      url.port = String(proxy.port);
      const release = proxy.hold();
      const fetching = fetchBuild({ ...order, url: url.href }, into, {
        ...limits,
        silent_max_ms: 2_000,
        answer_max_ms: 60_000,
      });
      await waitFor(() => proxy.connections === 1, 'its request');
      proxy.stall();
      release();
      expect(await fetching).toBeUndefined();
      expect(await Bun.file(join(into, 'run.sh')).text()).toBe('exit 0');
    });

    test('disconnects from a Muster that stops sending in the middle of the build, and asks again', async () => {
      let request_count = 0;
      async function* packHalf() {
        for await (const bytes of packed.packOf(directory)()) {
          yield bytes;
          await new Promise(() => {});
        }
      }
      const openBuild = async () => {
        request_count += 1;
        return request_count === 1 ? packHalf : packed.packOf(directory);
      };
      await using other = openOther({ openBuild });
      const { order, into } = await prepare(other);
      expect(await fetchBuild(order, into, { ...limits, silent_max_ms: 2_000, answer_max_ms: 60_000 })).toBeUndefined();
      expect(await Bun.file(join(into, 'run.sh')).text()).toBe('exit 0');
      expect(request_count).toBeGreaterThan(1);
    });

    test('says what to do: look at the log of Muster if that answered, and at its address if not', async () => {
      const openBuild = () => Promise.reject(new Error('the disk is full'));
      const other = openOther({ openBuild });
      const { order, into } = await prepare(other);
      const { origin } = new URL(order.url);
      expect(await fetchBuild(order, into, { ...limits, fetch_max_ms: 1_000 })).toBe(
        `${origin} answers with the status 503 (the build cannot be read); tell the operator to look at the log of Muster`,
      );
      await other[Symbol.asyncDispose]();
      expect(await fetchBuild(order, into, limits)).toMatch(
        /^Muster could not be reached from its node: .+; tell the operator to check MUSTER_KUBERNETES_HOST$/,
      );
    });
  });

  test('calls a pod, and a call fails if its answer has another shape or the pod sends an invalid message', async () => {
    const { socket } = await connect('broken');
    const connection = await waitFor(() => port.connectionOf('broken'), 'its connection');
    socket.onmessage = ({ data }) => {
      const { call } = JSON.parse(String(data));
      socket.send(JSON.stringify({ state: { sizes: { std_out: 7, std_err: 0 } } }));
      socket.send(JSON.stringify({ answer: call, result: { fine: true } }));
    };
    expect(await connection.call(Type.Object({ fine: Type.Boolean() }), { do: 'usage' })).toEqual({ fine: true });
    expect(connection.sizes.std_out).toBe(7);
    expect(
      await rejectionOf(PodUnreachable, connection.call(Type.Object({ other: Type.String() }), { do: 'stop' })),
    ).toBeDefined();
    const other = await connect('nonsense');
    const invalid = await waitFor(() => port.connectionOf('nonsense'), 'its connection');
    other.socket.onmessage = () => other.socket.send('{"nonsense": 1}');
    expect(await rejectionOf(PodUnreachable, invalid.call(Type.Unknown(), { do: 'stop' }))).toBeDefined();
    for (const server_id of ['broken', 'nonsense']) {
      await waitFor(() => port.connectionOf(server_id) === undefined, 'the connection to be closed');
    }
  });

  test.each([
    ['an answer to no call', 'unasked', '{"answer": 999, "result": {}}'],
    [
      'a state that is too long',
      'long',
      JSON.stringify({ state: { sizes: { std_out: 0, std_err: 0 }, x: 'x'.repeat(5_000) } }),
    ],
  ])(
    'closes the connection of a pod that sends %s, also during a call, and lets it in again later',
    async (_, id, text) => {
      const { socket } = await connect(id);
      const connection = await waitFor(() => port.connectionOf(id), 'its connection');
      socket.onmessage = () => socket.send(text);
      expect(await rejectionOf(PodUnreachable, connection.call(Type.Unknown(), { do: 'stop' }))).toBeDefined();
      await waitFor(() => socket.readyState === WebSocket.CLOSED, 'it to be closed');
      expect((await connect(id)).is_open).toBe(false);
      await waitFor(async () => (await connect(id)).is_open, 'it to be let in');
    },
  );

  test('refuses a pod that connects again and again, and no other', async () => {
    const opened: boolean[] = [];
    for (let time = 0; time < 30; time += 1) {
      const { socket, is_open } = await connect('restless');
      socket.close();
      opened.push(is_open);
    }
    expect(opened.slice(0, 10)).toEqual(Array(10).fill(true));
    expect(opened).toContain(false);
    expect((await connect('calm')).is_open).toBe(true);
  });

  test('refuses pods while another process has them, but not their builds, and closes what it had', async () => {
    const { build, token } = port.addressOf('one');
    const { socket } = await connect('one');
    await waitFor(() => port.connectionOf('one'), 'its connection');
    port.stopServing(listener);
    await waitFor(() => socket.readyState === WebSocket.CLOSED, 'it to be closed');
    expect((await connect('one')).is_open).toBe(false);
    port.serve(listener);
    has_pods = false;
    expect((await connect('one')).is_open).toBe(false);
    expect((await fetch(build, bearer(token))).status).toBe(200);
    has_pods = true;
    expect((await connect('one')).is_open).toBe(true);
  });

  test('keeps the latest connection of a pod', async () => {
    const first = await connect('one');
    const known = await waitFor(() => port.connectionOf('one'), 'its first connection');
    await connect('one');
    await waitFor(() => first.socket.readyState === WebSocket.CLOSED, 'the first to be closed');
    expect(port.connectionOf('one')).toBeDefined();
    expect(port.connectionOf('one')).not.toBe(known);
  });
});
