import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describeListenFailure, listenAddresses, resolveHost } from '../../src/platform/http/ports/listen.ts';
import { holdPort } from '../../src/platform/http/ports/port-hold.ts';
import { isRunning, listOpenFiles } from '../../src/platform/system/processes.ts';
import { findSocketsAt, listListeners } from '../../src/platform/system/tcp-ports.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { makeDataDirectory } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const ADDRESSES: [string, string[]][] = [
  ['127.0.0.1', ['127.0.0.1', '::1']],
  ['0.0.0.0', ['0.0.0.0', '::1']],
  ['localhost', ['127.0.0.1', '::1']],
  ['::1', ['::1', '127.0.0.1']],
  ['::', ['::']],
  ['10.0.0.7', ['10.0.0.7']],
  ['play.example.com', ['play.example.com']],
];
test.each(ADDRESSES)('listening: the host %s means the addresses %j', (host, addresses) => {
  expect(listenAddresses(host)).toEqual(addresses);
});

const HOSTS: [string, string][] = [
  ['localhost', 'localhost'],
  ['0.0.0.0', '0.0.0.0'],
  ['::1', '::1'],
  // The system looks these forms up like names.
  ['127.1', '127.0.0.1'],
  ['10.7', '10.0.0.7'],
];
test.each(HOSTS)('listening: the host %s is resolved to %s', async (host, address) => {
  expect(await resolveHost(host, undefined)).toBe(address);
});

test('listening: a start that is stopped while it looks up a name ends with the reason', async () => {
  const stopping = AbortSignal.abort('SIGTERM');
  expect(await resolveHost('muster.invalid', stopping).catch((reason: unknown) => reason)).toBe('SIGTERM');
});

test('listening: a name without an address is refused with what to do', async () => {
  const sentence = 'MUSTER_HOST is "muster.invalid", a name without an address: set it to an address of this machine.';
  await expect(resolveHost('muster.invalid', undefined)).rejects.toThrow(sentence);
});

const FAILURES: [string, string][] = [
  ['EADDRINUSE', 'Port 80 is taken by another program: stop that one, or set MUSTER_PORT to a free port.'],
  ['EACCES', 'This user may not listen at port 80: set MUSTER_PORT to a port above 1023, or allow the executable to'],
  ['EADDRNOTAVAIL', 'The service cannot listen at [fd00::7]:80 (Error: failed): check MUSTER_HOST and MUSTER_PORT.'],
];
test.each(FAILURES)('listening: a failure with %s says what to do', (code, sentence) => {
  const failure = Object.assign(new Error('failed'), { code });
  expect(describeListenFailure(failure, { host: 'fd00::7', port: 80 }, 'MUSTER_PORT')).toStartWith(sentence);
});

describe('a held port', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await makeDataDirectory();
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const hold = (port: number, name = 'hold', addresses = ['127.0.0.1', '::1']) =>
    holdPort({ addresses, port, file: join(directory, name) });
  const readHold = (name = 'hold') => JSON.parse(readFileSync(join(directory, name), 'utf8'));
  const serve = (port: number, reusePort: boolean) =>
    Bun.serve({ hostname: '127.0.0.1', port, reusePort, fetch: () => new Response('ok') });

  test('accepts processes that share it: others are refused, and so are connections', async () => {
    const port = findFreePort();
    const held = hold(port);
    expect(() => serve(port, false)).toThrow('in use');
    expect(hold(port, 'another')).toBeUndefined();
    expect(await fetch(`http://127.0.0.1:${port}`).catch((error) => error.code)).toBe('ECONNREFUSED');
    const server = serve(port, true);
    expect(await (await fetch(server.url)).text()).toBe('ok');
    await server.stop(true);
    held?.release();
    await waitFor(() => !isBound(port), 'the port to be free');
    expect(existsSync(join(directory, 'hold'))).toBe(false);
    await serve(port, false).stop(true);
  });

  test('is held by one process for any number of requests; another port has another process', async () => {
    const [port, other] = [findFreePort(), findFreePort()];
    hold(port);
    const first = readHold();
    hold(port);
    expect(readHold()).toEqual(first);
    const held = hold(other);
    expect(readHold().port).toBe(other);
    held?.release();
    await waitFor(() => !isRunning(first.process), 'the first process to end');
  });

  test('is released by a holder that was never recorded, after a kill or with a full disk', async () => {
    const port = findFreePort();
    hold(port);
    const forgotten = readHold();
    rmSync(join(directory, 'hold'));
    // While a shell replaces itself by another program, its environment cannot be read.
    await waitFor(
      () => readFileSync(`/proc/${forgotten.process.pid}/comm`, 'utf8') === 'sleep\n',
      'the holder to start',
    );
    const held = hold(port);
    expect(held).toBeDefined();
    await waitFor(() => !isRunning(forgotten.process), 'the forgotten process to end');
    held?.release();
  });

  test('is not held where another program listens', async () => {
    const server = serve(0, false);
    expect(hold(server.port ?? 0)).toBeUndefined();
    expect(existsSync(join(directory, 'hold'))).toBe(false);
    await server.stop(true);
  });

  /** Returns whether a port is bound: no table of the kernel has it, so this tries to bind it. */
  function isBound(port: number): boolean {
    try {
      void serve(port, false).stop(true);
      return false;
    } catch {
      return true;
    }
  }
});

test('listening sockets: each is listed with its user, on any address, and no connection is', async () => {
  await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') });
  await using other = Bun.serve({ hostname: '::1', port: 0, fetch: () => new Response('ok') });
  for (const { url } of [server, other]) expect(await (await fetch(url)).text()).toBe('ok');
  const listeners = await listListeners();
  for (const { port } of [server, other]) {
    const found = listeners.filter((one) => one.port === port);
    expect(found).toMatchObject([{ user_id: process.getuid?.() }]);
    expect([...findSocketsAt(port ?? 0)]).toContain(found[0]?.socket ?? '');
  }
});

test('listening sockets: a process without a free descriptor does not take the table for an empty one', async () => {
  const script = `
    const { openSync } = await import('node:fs');
    const { listListeners } = await import('./src/platform/system/tcp-ports.ts');
    const fill = () => { for (;;) openSync('/dev/null'); };
    try { fill(); } catch {}
    console.log(await listListeners().then(() => 'listed', ({ code }) => code));`;
  await using child = Bun.spawn(['sh', '-c', 'ulimit -n 128; exec "$0" -e "$1"', process.execPath, script], {
    stdout: 'pipe',
  });
  expect(await new Response(child.stdout).text()).toBe('EMFILE\n');
});

test('sockets on a port: each is found with its process, on any address', async () => {
  await using server = Bun.serve({ hostname: '::1', port: 0, fetch: () => new Response('ok') });
  // A connection of another program may have the same port on another address.
  const sockets = findSocketsAt(server.port ?? 0);
  function countSockets(pid: number): number {
    let count = 0;
    for (const file of listOpenFiles(pid)) {
      try {
        if (sockets.has(readlinkSync(file))) count += 1;
      } catch {
        // Another file, such as the list itself, was closed meanwhile.
      }
    }
    return count;
  }
  expect(countSockets(process.pid)).toBe(1);
  await using other = Bun.spawn(['sleep', '60']);
  expect(countSockets(other.pid)).toBe(0);
  expect(countSockets(2 ** 22 + 1)).toBe(0);
  // The kernel does not give this port to connections, and nothing listens on it.
  expect(findSocketsAt(1)).toEqual(new Set());
});
