import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtemp, readdir, readlink, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CompressedFiles, openCompressedFiles } from '../../../src/features/cdn/compressed-files.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import {
  createDiskSpace,
  type DiskSpace,
  storageFull,
  UNLIMITED_SPACE,
} from '../../../src/platform/system/disk-space.ts';
import { waitFor } from '../../support/wait.ts';

const BYTES_MAX = 100_000;
/** More than what is compressed while a request waits. */
const LARGE = 5 * 1024 ** 2;

let directory: string;
let files: CompressedFiles;
let emitted: ServiceEvent[];
const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
const openFiles = (space: DiskSpace = UNLIMITED_SPACE) =>
  openCompressedFiles({ directory, bytes_max: BYTES_MAX, at_once: 1, events, space });
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-compressed-'));
  await Bun.write(join(directory, 'left.gzip'), 'of an earlier start');
  emitted = [];
  files = await openFiles();
});
afterEach(async () => {
  await files[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Makes a file of a site that counts how often it is read. */
function makeOriginal(bytes: Uint8Array<ArrayBuffer>) {
  const original = {
    upload_id: crypto.randomUUID(),
    content_id: crypto.randomUUID(),
    content_length: bytes.length,
    reads: 0,
    async read() {
      original.reads += 1;
      return new Blob([bytes]).stream();
    },
  };
  return original;
}

const text = (length: number) => new TextEncoder().encode('abc'.repeat(Math.ceil(length / 3))).slice(0, length);
/** Compresses to half of its length. */
const digits = (length: number) => new TextEncoder().encode(Buffer.from(random(length / 2)).toString('hex'));

function random(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let start = 0; start < length; start += 65_536) crypto.getRandomValues(bytes.subarray(start, start + 65_536));
  return bytes;
}

async function bytesOnDisk(): Promise<number> {
  // A file may disappear here while it is removed.
  const sizeOf = (name: string) =>
    stat(join(directory, name)).then(
      ({ size }) => size,
      () => 0,
    );
  const sizes = await Promise.all((await readdir(directory)).map(sizeOf));
  return sizes.reduce((sum, size) => sum + size, 0);
}

describe('the cache of compressed files', () => {
  test('compressed files: those of an earlier start are removed', async () => {
    expect(await readdir(directory)).toEqual([]);
  });

  test('compressed files: a file is compressed once for concurrent and later requests', async () => {
    const original = makeOriginal(text(50_000));
    const found = await Promise.all(Array.from({ length: 20 }, () => files.find(original, 'gzip')));
    const [first] = found;
    expect(found.every((found) => found?.path === first?.path)).toBe(true);
    expect(await files.find(original, 'gzip')).toEqual(first);
    expect(original.reads).toBe(1);
    const bytes = await Bun.file(first?.path ?? '').bytes();
    expect(bytes.length).toBe(first?.content_length ?? 0);
    expect(Bun.gunzipSync(bytes)).toEqual(text(50_000));
    expect((await files.find(original, 'zstd'))?.path).not.toBe(first?.path);
  });

  test('compressed files: a large file is sent uncompressed until its compressed form is ready', async () => {
    const original = makeOriginal(text(LARGE));
    expect(await files.find(original, 'br')).toBeUndefined();
    const found = await waitFor(() => files.find(original, 'br'), 'the file to be compressed');
    expect(found.content_length).toBeLessThan(BYTES_MAX);
    expect(original.reads).toBe(1);
  });

  test('compressed files: beyond the limit of concurrent compressions, files are sent uncompressed', async () => {
    const hanging = makeOriginal(text(LARGE));
    const { promise, resolve } = Promise.withResolvers<void>();
    const read = async () => {
      await promise;
      return new Blob([text(LARGE)]).stream();
    };
    expect(await files.find({ ...hanging, read }, 'gzip')).toBeUndefined();
    const other = makeOriginal(text(50_000));
    expect(await files.find(other, 'gzip')).toBeUndefined();
    expect(other.reads).toBe(0);
    resolve();
    await waitFor(() => files.find(other, 'gzip'), 'the file to be compressed');
  });

  test('compressed files: the total is limited, and the least recently used are removed', async () => {
    const originals = Array.from({ length: 8 }, () => makeOriginal(digits(50_000)));
    const [first, ...others] = originals;
    if (!first) throw new Error('there are compressed files');
    await files.find(first, 'gzip');
    for (const original of others) {
      expect((await files.find(original, 'gzip'))?.content_length).toBeGreaterThan(20_000);
      await files.find(first, 'gzip');
    }
    expect(first.reads).toBe(1);
    await waitFor(async () => (await bytesOnDisk()) <= BYTES_MAX, 'the others to be removed');
  });

  test('compressed files: a file that shrinks too little, or is above the cache, is sent uncompressed', async () => {
    for (const bytes of [random(50_000), digits(400_000)]) {
      const original = makeOriginal(bytes);
      for (let time = 0; time < 2; time += 1) expect(await files.find(original, 'gzip')).toBeUndefined();
      expect(original.reads).toBe(1);
    }
    expect(await readdir(directory)).toEqual([]);
  });

  test('compressed files: one that another program removed is compressed again', async () => {
    const original = makeOriginal(text(50_000));
    const found = await files.find(original, 'gzip');
    await rm(found?.path ?? '');
    expect(await files.find(original, 'gzip')).toBeUndefined();
    expect(await files.find(original, 'gzip')).toBeDefined();
  });

  test('compressed files: a failure is logged, leaves nothing, and is tried again', async () => {
    const original = makeOriginal(text(50_000));
    const failing = {
      ...original,
      read: async () =>
        new ReadableStream<Uint8Array>({ pull: (sink) => sink.error(new Error('the storage does not answer')) }),
    };
    expect(await files.find(failing, 'gzip')).toBeUndefined();
    expect(emitted.map(({ event }) => event)).toEqual(['file_not_compressed']);
    expect(await readdir(directory)).toEqual([]);
    expect(await files.find(original, 'gzip')).toBeDefined();
  });

  test('compressed files: a file that cannot be read leaves nothing open', async () => {
    const read = () => Promise.reject(new Error('the storage does not answer'));
    for (let attempt = 0; attempt < 10; attempt += 1) await files.find({ ...makeOriginal(text(9)), read }, 'gzip');
    expect(emitted).toHaveLength(10);
    const links = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''));
    expect((await Promise.all(links)).filter((path) => path.startsWith(directory))).toEqual([]);
  });

  test('compressed files: the reserve of the disk is left alone, without an event for each request', async () => {
    const options = { directory, reserve_bytes: Number.MAX_SAFE_INTEGER, events };
    await using none = await openFiles(createDiskSpace(options));
    const original = makeOriginal(text(50_000));
    expect(await none.find(original, 'gzip')).toBeUndefined();
    expect(original.reads).toBe(0);
    expect(await readdir(directory)).toEqual([]);
    expect(emitted).toEqual([]);
  });

  test('compressed files: one that reaches the reserve while it is written is removed, and is tried again', async () => {
    let bytes_left = 10_000;
    const createMeter = () => async (bytes: number) => {
      bytes_left -= bytes;
      if (bytes_left < 0) throw storageFull();
    };
    await using few = await openFiles({ ...UNLIMITED_SPACE, createMeter });
    const original = makeOriginal(digits(50_000));
    expect(await few.find(original, 'gzip')).toBeUndefined();
    expect(original.reads).toBe(1);
    expect(await readdir(directory)).toEqual([]);
    expect(emitted).toEqual([]);
    bytes_left = 100_000;
    expect(await few.find(original, 'gzip')).toBeDefined();
  });
});
