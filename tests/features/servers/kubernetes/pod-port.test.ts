import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { PodUnreachable } from '../../../../src/features/servers/runtimes/kubernetes/pod-connection.ts';
import {
  openPodPort,
  type PodOwner,
  type PodPort,
} from '../../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import { rejectionOf } from '../../../support/refusal.ts';
import { waitFor } from '../../../support/wait.ts';

describe('kubernetes: the port for pods', () => {
  let directory: string;
  let port: PodPort;
  let has_pods = true;
  const owner: PodOwner = { mayAct: () => has_pods, onChange() {} };
  const packed = createPackedBuilds();
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'muster-pod-build-'));
    await mkdir(join(directory, 'inside'));
    await Bun.write(join(directory, 'inside/data'), 'x'.repeat(3_000_000));
    await Bun.write(join(directory, 'run.sh'), 'exit 0');
    await Bun.write(join(directory, 'empty'), '');
    await chmod(join(directory, 'run.sh'), 0o755);
    const openBuild = async (id: string) => (id === 'one' ? packed.open(directory) : undefined);
    port = openPodPort({ host: '127.0.0.1', port: 0, key: 'a key', openBuild });
    port.serve(owner);
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
    const [first, second] = await Promise.all(
      [1, 2].map(async () => await (await fetch(build, bearer(token))).bytes()),
    );
    expect(first).toEqual(second ?? new Uint8Array());
    expect(new Bun.CryptoHasher('sha256').update(first ?? '').digest('hex')).toBe(
      (await packed.facts(directory)).sha256,
    );
    const list = await Bun.$`tar -tvf - < ${new Response(first)}`.text();
    expect(list.split('\n').map((line) => [line.slice(0, 10), line.split(' ').at(-1)].join(' '))).toEqual([
      '-rw-r--r-- empty',
      'drwxr-xr-x inside/',
      '-rw-r--r-- inside/data',
      '-rwxr-xr-x run.sh',
      ' ',
    ]);
  });

  test('calls a pod, and its call fails once the pod is away or speaks nonsense', async () => {
    const { socket } = await connect('one');
    const connection = await waitFor(() => port.connectionOf('one'), 'its connection');
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
    socket.onmessage = () => socket.send('{"nonsense": 1}');
    expect(await rejectionOf(PodUnreachable, connection.call(Type.Unknown(), { do: 'stop' }))).toBeDefined();
    await waitFor(() => port.connectionOf('one') === undefined, 'the connection to be closed');
  });

  test('refuses pods while another process has them, but not their builds, and closes what it had', async () => {
    const { build, token } = port.addressOf('one');
    const { socket } = await connect('one');
    await waitFor(() => port.connectionOf('one'), 'its connection');
    port.stopServing(owner);
    await waitFor(() => socket.readyState === WebSocket.CLOSED, 'it to be closed');
    expect((await connect('one')).is_open).toBe(false);
    port.serve(owner);
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
