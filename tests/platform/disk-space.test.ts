import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { unpackArchive } from '../../src/features/builds/archives/unpack.ts';
import { ServiceError } from '../../src/platform/errors.ts';
import { createDiskObjects } from '../../src/platform/objects/disk.ts';
import { createDiskSpace } from '../../src/platform/system/disk-space.ts';
import { syncPath } from '../../src/platform/system/durable.ts';
import { mountSmallDisk } from '../support/objects/small-disk.ts';
import { piecesOf } from '../support/pieces.ts';
import { rejectionOf } from '../support/refusal.ts';
import { packTar } from '../support/tar.ts';

const GIB = 1024 ** 3;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-space-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Returns a disk space whose reserve is `room_bytes` below the free space. */
async function openSpace(room_bytes: number) {
  const { bavail, bsize } = await statfs(directory);
  return createDiskSpace({ directory, reserve_bytes: bavail * bsize - room_bytes, events: { emit() {} } });
}

const codeOf = async (work: Promise<unknown>) => (await rejectionOf(ServiceError, work)).code;

test('disk space: content that fits above the reserve is accepted, larger content is refused', async () => {
  const space = await openSpace(GIB);
  await space.assertRoom(1_000);
  expect(await space.isLow()).toBe(false);
  expect(await codeOf(space.assertRoom(2 * GIB))).toBe('STORAGE_FULL');
  const full = await openSpace(-GIB);
  expect(await full.isLow()).toBe(true);
  expect(await codeOf(full.assertRoom(0))).toBe('STORAGE_FULL');
});

test('disk space: a meter refuses the first write below the reserve, and every later one when the space is used up', async () => {
  const takeRoom = (await openSpace(GIB)).createMeter();
  await takeRoom(1_000);
  expect(await codeOf(takeRoom(2 * GIB))).toBe('STORAGE_FULL');
  expect(await codeOf((await openSpace(-GIB)).createMeter()(1))).toBe('STORAGE_FULL');
});

test('objects on disk: an object that would use the reserve is refused before its first byte, and leaves nothing', async () => {
  const objects = createDiskObjects(directory, await openSpace(-GIB));
  const content = piecesOf('abc');
  const refusal = await rejectionOf(ServiceError, objects.put('a/0', content, 3));
  expect([refusal.code, refusal.status, refusal.retry_after_ms]).toEqual(['STORAGE_FULL', 503, 30_000]);
  expect(content.requested_count).toBe(0);
  expect(await readdir(directory)).toEqual([]);
});

test('unpacking: an archive that would use the reserve is refused, however small it is compressed', async () => {
  const archive = gzipSync(await packTar([{ name: 'large', content: Buffer.alloc(1_000_000) }]));
  const takeRoom = (await openSpace(-GIB)).createMeter();
  const unpacking = unpackArchive(new Blob([new Uint8Array(archive)]).stream(), directory, { takeRoom });
  expect(await codeOf(unpacking)).toBe('STORAGE_FULL');
});

test('syncPath: a failed fsync leaves no file open', async () => {
  const openFiles = async () => (await readdir('/proc/self/fd')).length;
  const before = await openFiles();
  // A file in /proc can be opened, but not synced.
  for (let time = 0; time < 50; time += 1) await rejectionOf(Error, syncPath('/proc/self'));
  expect(await openFiles()).toBeLessThan(before + 10);
});

const disk = await mountSmallDisk(32);
afterAll(() => disk?.[Symbol.asyncDispose]());

test.skipIf(!disk)(
  'disk space: a database without room for its next log file is unhealthy, and the reason says so',
  async () => {
    if (!disk) throw new Error('there is no disk');
    const space = createDiskSpace({ directory: disk.directory, reserve_bytes: 0, events: { emit() {} } });
    expect(await space.check()).toBeUndefined();
    await disk.fillUntil(8 * 1024 ** 2);
    expect(await space.check()).toMatchObject({
      code: 'DISK_FULL',
      message: expect.stringMatching(/^the disk of the data directory is full \(\d+ bytes are free\)$/),
    });
    await disk.empty();
    expect(await space.check()).toBeUndefined();
  },
);
