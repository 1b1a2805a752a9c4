import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { makeHome } from '../../support/program.ts';
import { makeShownSite } from '../../support/site-visits.ts';
import { waitFor } from '../../support/wait.ts';

const READERS = 120;
/** Compressed to half of its length, which is more than any socket buffer. */
const FILE_BYTES = 24 * 1024 ** 2;
const MIB = 1024 ** 2;
/** Readers took 450 MiB with a compressor for each, and 10 MiB with cached files. */
const GROWTH_MAX_MIB = 200;

const memoryOf = (pid: number) => {
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
};

function makeText(length: number): string {
  const bytes = new Uint8Array(length / 2);
  for (let start = 0; start < bytes.length; start += 65_536)
    crypto.getRandomValues(bytes.subarray(start, start + 65_536));
  return Buffer.from(bytes).toString('hex');
}

test('sites: clients that do not read a compressed file take little memory', async () => {
  await using home = await makeHome({ MUSTER_DEMO: 'off' }, { has_prepared_database: true });
  const program = await home.start();
  const site = await makeShownSite(program, { 'large.js': makeText(FILE_BYTES), 'index.html': 'hello' });
  const before = memoryOf(program.pid);
  const sockets: Socket[] = [];
  /** Requests the file, and reads its first bytes only. */
  async function open(): Promise<void> {
    const { hostname, port } = new URL(program.url);
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    socket.once('error', reject);
    socket.once('data', (bytes: Buffer) => {
      socket.pause();
      resolve(bytes);
    });
    socket.write(`GET /large.js HTTP/1.1\r\nHost: ${site.host}\r\nAccept-Encoding: br\r\n\r\n`);
    expect((await promise).toString('latin1')).toStartWith('HTTP/1.1 200');
  }
  try {
    await Promise.all(Array.from({ length: READERS }, open));
    await waitFor(async () => {
      const headers = { host: site.host, 'accept-encoding': 'br' };
      const response = await fetch(`${program.url}/large.js`, { method: 'HEAD', headers, decompress: false });
      return response.headers.get('content-encoding') === 'br';
    }, 'the file to be compressed');
    await Promise.all(Array.from({ length: READERS }, open));
    const grown = memoryOf(program.pid) - before;
    console.info(`${2 * READERS} readers of ${FILE_BYTES / MIB} MiB: ${before} MiB and ${grown} more`);
    expect(grown).toBeLessThan(GROWTH_MAX_MIB);
    expect(await (await site.visit('/')).text()).toBe('hello');
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
