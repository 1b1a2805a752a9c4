import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '../../src/platform/errors.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { openIpDatabase } from '../../src/platform/ip-database.ts';
import { writeIpDatabase } from '../support/ip-database.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

const directory = await mkdtemp(join(tmpdir(), 'muster-ip-'));
afterAll(() => rm(directory, { recursive: true }));
const HERE = { latitude: 50.5, longitude: 8.25 };
const THERE = { latitude: -33.5, longitude: 151.25 };

async function writeFile(name: string, content: Uint8Array | string): Promise<string> {
  const path = join(directory, name);
  await Bun.write(path, content);
  return path;
}

describe('a file that is no IP database', () => {
  const CASES: [string, Uint8Array | string][] = [
    ['empty', ''],
    ['text', 'this is no database'],
    ['packed', Bun.gzipSync(Buffer.from('x'))],
  ];
  for (const [name, content] of CASES) {
    test(`${name}: the start fails and says why`, async () => {
      const path = await writeFile(name, content);
      expect((await rejectionOf(StartError, openIpDatabase(path))).message).toContain(
        `MUSTER_IP_DATABASE is "${path}"`,
      );
    });
  }

  test('a missing file: the start fails and says why', async () => {
    const path = join(directory, 'nothing');
    expect((await rejectionOf(StartError, openIpDatabase(path))).message).toContain(`MUSTER_IP_DATABASE is "${path}"`);
  });
});

test('ipDatabase: an address has the coordinates in the file, also in IPv6 form; an unknown one has none', async () => {
  const path = await writeFile(
    'places.mmdb',
    writeIpDatabase([
      { address: '127.0.0.1', location: HERE },
      { address: '9.9.9.9', location: THERE },
    ]),
  );
  const database = await openIpDatabase(path);
  expect(database.coordinatesOf('127.0.0.1')).toEqual(HERE);
  expect(database.coordinatesOf('::ffff:127.0.0.1')).toEqual(HERE);
  expect(database.coordinatesOf('9.9.9.9')).toEqual(THERE);
  for (const address of ['9.9.9.8', '2606:4700::1111', '', 'x']) {
    expect(database.coordinatesOf(address)).toBeUndefined();
  }
});

test('ipDatabase: a replaced file is read again; a broken one is reported and ignored', async () => {
  const path = await writeFile('moving.mmdb', writeIpDatabase([{ address: '9.9.9.9', location: HERE }]));
  const database = await openIpDatabase(path);
  const events: ServiceEvent[] = [];
  const stopping = new AbortController();
  await writeFile('moving.mmdb', 'half');
  const loop = database.startReading({ signal: stopping.signal, events: { emit: (event) => events.push(event) } });
  await waitFor(() => events.some(({ event }) => event === 'loop_failed'), 'the broken file to be reported');
  expect(database.coordinatesOf('9.9.9.9')).toEqual(HERE);
  await rename(await writeFile('next.mmdb', writeIpDatabase([{ address: '9.9.9.9', location: THERE }])), path);
  await waitFor(() => database.coordinatesOf('9.9.9.9')?.latitude === THERE.latitude, 'the new file to be read');
  stopping.abort();
  await loop.stopped;
});
