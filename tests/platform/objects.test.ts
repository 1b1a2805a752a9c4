import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceError } from '../../src/platform/errors.ts';
import { createDiskObjects } from '../../src/platform/objects/disk.ts';
import { type ByteRange, isMissingObject, type Objects } from '../../src/platform/objects/objects.ts';
import { openS3Objects } from '../../src/platform/objects/s3.ts';
import { listBucket, openTestBucket, TEST_S3 } from '../support/objects/s3.ts';
import { piecesOf } from '../support/pieces.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

let parent: string;
let count = 0;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'muster-objects-'));
});
afterAll(() => rm(parent, { recursive: true, force: true }));

afterAll(() => {
  if (TEST_S3 === undefined) console.log('Not tried, because it is not here: an S3 server (MUSTER_TEST_S3=http://…).');
});

/** Storage of a test's own. */
interface Opened {
  objects: Objects;
  /** Lists all files of the storage. */
  files(): Promise<string[]>;
}

async function openDisk(): Promise<Opened & { directory: string }> {
  count += 1;
  const home = join(parent, String(count));
  const directory = join(home, 'objects');
  await mkdir(directory, { recursive: true });
  const files = async () => {
    const entries = await readdir(home, { recursive: true, withFileTypes: true });
    const paths = entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
    return paths.map((path) => path.slice(directory.length + 1)).toSorted();
  };
  return { objects: createDiskObjects(directory), directory, files };
}

async function openS3(): Promise<Opened> {
  const { parsed } = await openTestBucket();
  return { objects: await openS3Objects(parsed), files: () => listBucket(parsed) };
}

/** Describes what holds on every kind of storage. */
function describeOnAll(what: string, describeOn: (open: () => Promise<Opened>) => void): void {
  describe(`on disk, ${what}`, () => describeOn(openDisk));
  describe.skipIf(TEST_S3 === undefined)(`on S3, ${what}`, () => describeOn(openS3));
}

const textOf = async (objects: Objects, key: string, range?: ByteRange): Promise<string> =>
  await new Response(await objects.read(key, range)).text();

describeOnAll('an object is not stored, and nothing of it remains,', (open) => {
  const CASES: [name: string, pieces: string[], length: number][] = [
    ['if fewer bytes come', ['abc', 'd'], 5],
    ['if more come', ['abc', 'def'], 5],
    ['if more come after the announced length', ['abcde', 'f'], 5],
    ['if none come', [], 1],
    ['if any come for an empty one', ['a'], 0],
    ['if all come in one piece with one more', ['abcdef'], 5],
    ['if the last of many bytes is missing', ['a'.repeat(9_000_000), 'b'.repeat(999_999)], 10_000_000],
  ];
  test.each(CASES)('%s', async (_name, pieces, length) => {
    const { objects, files } = await open();
    const content = piecesOf(...pieces);
    const error = await rejectionOf(ServiceError, objects.put('a/0.part', content, length));
    expect(error).toMatchObject({
      code: 'UPLOAD_LENGTH_MISMATCH',
      status: 400,
      message: `The body does not have the ${length} bytes announced when the upload was prepared. Send exactly that many.`,
    });
    expect(content.is_closed).toBe(true);
    // Some S3 servers list an object for a moment after its removal.
    await waitFor(async () => (await files()).length === 0, 'nothing to be left');
  });

  test('if the sender disconnects', async () => {
    const { objects, files } = await open();
    const disconnect = new Error('the connection was closed');
    expect(await rejectionOf(Error, objects.put('a/0.part', piecesOf('abc', disconnect), 5))).toBe(disconnect);
    expect(await rejectionOf(Error, objects.put('a/0.part', piecesOf('abcde', disconnect), 5))).toBe(disconnect);
    const many = 'a'.repeat(9_000_000);
    expect(await rejectionOf(Error, objects.put('a/0.part', piecesOf(many, disconnect), 10_000_000))).toBe(disconnect);
    expect(await files()).toEqual([]);
  });

  test('and its content is read no further than necessary', async () => {
    const { objects } = await open();
    const content = piecesOf('abc', 'def', 'ghi', 'jkl');
    await rejectionOf(ServiceError, objects.put('a/0.part', content, 4));
    expect([content.requested_count, content.is_closed]).toEqual([2, true]);
  });

  test('and an existing one stays unchanged', async () => {
    const { objects, files } = await open();
    await objects.put('a/0.part', piecesOf('first'), 5);
    await rejectionOf(ServiceError, objects.put('a/0.part', piecesOf('sec'), 5));
    await rejectionOf(Error, objects.put('a/0.part', piecesOf('sec', new Error('gone')), 5));
    expect(await textOf(objects, 'a/0.part')).toBe('first');
    expect(await files()).toEqual(['a/0.part']);
  });
});

describeOnAll('a key that leaves the storage is refused by every method:', (open) => {
  const KEYS = ['', '.', '..', '../a', 'a/../b', 'a/..', './a', '/etc/passwd', 'a//b', 'a/', '/', 'a\\..\\b', 'a\0'];
  test.each([...KEYS, 'a/%2e%2e', 'Ä', 'a b', 'a\n', 'a?b', 'a#b'].map((key): [string] => [key]))('%j', async (key) => {
    const { objects, files } = await open();
    const message = 'broken invariant: the key of an object stays inside the store';
    const ways = [
      () => objects.put(key, piecesOf('abc'), 3),
      () => objects.list(key),
      () => objects.read(key),
      () => objects.remove(['a/0', key]),
      () => objects.removeFolder(key),
    ];
    for (const way of ways) expect((await rejectionOf(Error, way())).message).toBe(message);
    expect(await files()).toEqual([]);
  });
});

describeOnAll('an object', (open) => {
  test('is stored exactly, in any number of pieces', async () => {
    const { objects, files } = await open();
    const pieces = Array.from({ length: 300 }, (_, index) => String.fromCharCode(97 + (index % 26)).repeat(index * 13));
    const text = pieces.join('');
    await objects.put('a/0.part', piecesOf(...pieces), text.length);
    expect(await textOf(objects, 'a/0.part')).toBe(text);
    expect(await objects.list('a')).toEqual(new Map([['a/0.part', text.length]]));
    expect(await files()).toEqual(['a/0.part']);
  });

  test('is stored if it is empty', async () => {
    const { objects } = await open();
    await objects.put('a/0.part', piecesOf(), 0);
    expect(await objects.list('a')).toEqual(new Map([['a/0.part', 0]]));
    expect(await textOf(objects, 'a/0.part')).toBe('');
  });

  test('replaces an existing one', async () => {
    const { objects, files } = await open();
    await objects.put('a/0.part', piecesOf('first'), 5);
    await objects.put('a/0.part', piecesOf('second'), 6);
    expect(await textOf(objects, 'a/0.part')).toBe('second');
    expect(await files()).toEqual(['a/0.part']);
  });

  test('is stored whole when several callers send it at once', async () => {
    const { objects, files } = await open();
    const texts = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(1_000));
    const pieces = (text: string) => text.match(/.{100}/g) ?? [];
    await Promise.all(texts.map((text) => objects.put('a/0.part', piecesOf(...pieces(text)), 1_000)));
    expect(texts).toContain(await textOf(objects, 'a/0.part'));
    expect(await files()).toEqual(['a/0.part']);
  });

  test('is read in parts, including the last byte', async () => {
    const { objects } = await open();
    await objects.put('a/0', piecesOf('0123456789'), 10);
    expect(await textOf(objects, 'a/0', { start: 0, end: 0 })).toBe('0');
    expect(await textOf(objects, 'a/0', { start: 3, end: 9 })).toBe('3456789');
    expect(await textOf(objects, 'a/0', { start: 0, end: 9 })).toBe('0123456789');
  });

  test('is read exactly if it is large, also from the middle', async () => {
    const { objects } = await open();
    const content = crypto.getRandomValues(new Uint32Array(16_384));
    const bytes = Buffer.concat(Array<Uint8Array>(160).fill(new Uint8Array(content.buffer))).subarray(3);
    await objects.put('a/0', chunksOf(bytes), bytes.length);
    for (const range of [undefined, { start: 262_143, end: 262_144 }, { start: 1_000_001, end: bytes.length - 1 }]) {
      const read = await new Response(await objects.read('a/0', range)).bytes();
      expect(Buffer.compare(read, range ? bytes.subarray(range.start, range.end + 1) : bytes)).toBe(0);
    }
  });

  test('that is missing is refused before it is read', async () => {
    const { objects } = await open();
    for (const range of [undefined, { start: 0, end: 9 }]) {
      const error = await rejectionOf(ServiceError, objects.read('a/0', range));
      expect([error.code, isMissingObject(error)]).toEqual(['OBJECTS_UNAVAILABLE', true]);
    }
  });

  test('whose reader disconnects causes no failure', async () => {
    const { objects } = await open();
    await objects.put('a/0', piecesOf('a'.repeat(5_000_000)), 5_000_000);
    await (await objects.read('a/0')).cancel();
    const reader = (await objects.read('a/0')).getReader();
    expect((await reader.read()).value?.length).toBeGreaterThan(0);
    await reader.cancel();
  });
});

describeOnAll('a folder', (open) => {
  /** More than one page of the tests' S3 server. */
  const MANY = Array.from({ length: 25 }, (_, index) => `a/${index}`);

  test('is listed in full, and nothing beside it', async () => {
    const { objects } = await open();
    for (const key of [...MANY, 'ab/0', 'a0']) await objects.put(key, piecesOf('abc'), 3);
    const listed = await objects.list('a');
    expect([...listed.keys()].toSorted()).toEqual(MANY.toSorted());
    expect([...listed.values()]).toEqual(MANY.map(() => 3));
    expect(await objects.list('b')).toEqual(new Map());
  });

  test('is removed in full, and nothing beside it; a missing one counts as removed', async () => {
    const { objects, files } = await open();
    for (const key of [...MANY, 'ab/0', 'a0']) await objects.put(key, piecesOf('abc'), 3);
    await objects.remove(['a/0', 'a/1', 'a/none', 'none/0']);
    expect((await objects.list('a')).size).toBe(MANY.length - 2);
    await objects.removeFolder('a');
    await objects.removeFolder('a');
    expect(await files()).toEqual(['a0', 'ab/0']);
    await objects.remove([]);
    expect(await textOf(objects, 'ab/0')).toBe('abc');
  });
});

describe('on disk, an object', () => {
  test('is readable by its owner only', async () => {
    const { objects, directory } = await openDisk();
    await objects.put('a/0', piecesOf('abc'), 3);
    expect((await stat(join(directory, 'a/0'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(directory, 'a'))).mode & 0o777).toBe(0o700);
  });

  test('is not listed before it is complete', async () => {
    const { objects, files } = await openDisk();
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* content() {
      yield Buffer.from('ab');
      begun.resolve();
      await ended.promise;
      yield Buffer.from('c');
    }
    const putting = objects.put('a/0', content(), 3);
    await begun.promise;
    expect([(await files()).length, (await objects.list('a')).size]).toEqual([1, 0]);
    ended.resolve();
    await putting;
    expect(await objects.list('a')).toEqual(new Map([['a/0', 3]]));
  });

  test('is stored if its folder is removed meanwhile', async () => {
    const { objects, files } = await openDisk();
    await objects.put('a/0', piecesOf('abc'), 3);
    async function* content() {
      yield Buffer.from('ab');
      await objects.removeFolder('a');
      yield Buffer.from('c');
    }
    await objects.put('a/1', content(), 3);
    expect(await files()).toEqual(['a/1']);
  });

  test('is refused if its folder cannot be written', async () => {
    const { objects, directory } = await openDisk();
    await writeFile(join(directory, 'a'), 'a file where the folder should be');
    const { message } = await rejectionOf(Error, objects.put('a/0.part', piecesOf('abc'), 3));
    expect(message).toMatch(/EEXIST|ENOTDIR/);
  });
});

describe('on disk, a folder of objects', () => {
  test('that cannot be read makes them unavailable', async () => {
    const { objects, directory } = await openDisk();
    await writeFile(join(directory, 'a'), 'a file where the folder should be');
    const error = await rejectionOf(ServiceError, objects.read('a/0'));
    expect([error.code, isMissingObject(error)]).toEqual(['OBJECTS_UNAVAILABLE', false]);
  });
});

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 65_536) yield bytes.subarray(start, start + 65_536);
}
