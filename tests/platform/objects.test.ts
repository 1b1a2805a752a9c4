import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceError } from '../../src/platform/errors.ts';
import { createDiskObjects, type Objects } from '../../src/platform/objects/objects.ts';
import { rejectionOf } from '../support/refusal.ts';

let parent: string;
let count = 0;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'muster-objects-'));
});
afterAll(() => rm(parent, { recursive: true, force: true }));

/** Objects in a directory of my own, and the names of all files in it. */
async function openObjects(): Promise<{ objects: Objects; directory: string; files(): Promise<string[]> }> {
  count += 1;
  const directory = join(parent, String(count), 'objects');
  await mkdir(directory, { recursive: true });
  const files = async () => {
    const entries = await readdir(join(parent, String(count)), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  };
  return { objects: createDiskObjects(directory), directory, files };
}

/** Content in pieces, as a request brings it, and how many of them were asked for. */
function piecesOf(...pieces: (string | Error)[]): AsyncIterable<Uint8Array> & { taken: number; is_closed: boolean } {
  const content = {
    taken: 0,
    is_closed: false,
    async *[Symbol.asyncIterator]() {
      try {
        for (const piece of pieces) {
          content.taken += 1;
          if (piece instanceof Error) throw piece;
          yield Buffer.from(piece);
        }
      } finally {
        content.is_closed = true;
      }
    },
  };
  return content;
}

const textOf = (objects: Objects, key: string, range?: { start: number; end: number }): Promise<string> =>
  new Response(objects.read(key, range)).text();

describe('an object is not stored, and nothing of it is left,', () => {
  const CASES: [name: string, pieces: (string | Error)[], length: number][] = [
    ['when fewer bytes come', ['abc', 'd'], 5],
    ['when more come', ['abc', 'def'], 5],
    ['when none come', [], 1],
    ['when any come for an empty one', ['a'], 0],
    ['when all come in one piece with one more', ['abcdef'], 5],
  ];
  test.each(CASES)('%s', async (_name, pieces, length) => {
    const { objects, files } = await openObjects();
    const error = await rejectionOf(ServiceError, objects.put('a/0.part', piecesOf(...pieces), length));
    expect(error).toMatchObject({
      code: 'UPLOAD_LENGTH_MISMATCH',
      status: 400,
      message: `Expected ${length} bytes, as was said when the upload was prepared. Send exactly these.`,
    });
    expect(await objects.size('a/0.part')).toBeUndefined();
    expect(await files()).toEqual([]);
  });

  test('when whoever sends it goes away in the middle', async () => {
    const { objects, files } = await openObjects();
    const gone = new Error('the connection was closed');
    expect(await rejectionOf(Error, objects.put('a/0.part', piecesOf('abc', gone), 5))).toBe(gone);
    expect(await files()).toEqual([]);
  });

  test('and no more of it is read than is needed to know', async () => {
    const { objects } = await openObjects();
    const content = piecesOf('abc', 'def', 'ghi', 'jkl');
    await rejectionOf(ServiceError, objects.put('a/0.part', content, 4));
    expect([content.taken, content.is_closed]).toEqual([2, true]);
  });

  test('and one that was there before stays as it was', async () => {
    const { objects, files } = await openObjects();
    await objects.put('a/0.part', piecesOf('first'), 5);
    await rejectionOf(ServiceError, objects.put('a/0.part', piecesOf('sec'), 5));
    await rejectionOf(Error, objects.put('a/0.part', piecesOf('sec', new Error('gone')), 5));
    expect(await textOf(objects, 'a/0.part')).toBe('first');
    expect(await files()).toEqual(['0.part']);
  });

  test('when there is no place for it', async () => {
    const { objects, directory } = await openObjects();
    await writeFile(join(directory, 'a'), 'a file where the folder should be');
    const { message } = await rejectionOf(Error, objects.put('a/0.part', piecesOf('abc'), 3));
    expect(message).toMatch(/EEXIST|ENOTDIR/);
  });
});

describe('a key that could lead elsewhere is refused by every way:', () => {
  const KEYS = [
    '',
    '.',
    '..',
    '../a',
    'a/../b',
    'a/..',
    './a',
    '/etc/passwd',
    'a//b',
    'a/',
    '/',
    'a\\..\\b',
    'a\0',
    'a/%2e%2e',
    'Ä',
    'a b',
    'a\n',
  ];
  test.each(KEYS.map((key): [string] => [key]))('%j', async (key) => {
    const { objects, files } = await openObjects();
    const said = 'broken promise: the key of an object leads nowhere else';
    // An async function rejects where a plain one throws.
    const ways: (() => Promise<unknown>)[] = [
      async () => objects.put(key, piecesOf('abc'), 3),
      async () => objects.size(key),
      async () => void objects.read(key),
      async () => objects.join(['a/0.part'], key),
      async () => objects.join([key, 'a/0.part'], 'a/0'),
      async () => objects.remove(key),
    ];
    for (const way of ways) expect((await rejectionOf(Error, way())).message).toBe(said);
    expect(await files()).toEqual([]);
  });
});

describe('an object is stored', () => {
  test('exactly, in however many pieces it comes, for us alone', async () => {
    const { objects, directory, files } = await openObjects();
    const pieces = Array.from({ length: 300 }, (_, index) => String.fromCharCode(97 + (index % 26)).repeat(index * 13));
    const text = pieces.join('');
    await objects.put('a/0.part', piecesOf(...pieces), text.length);
    expect(await textOf(objects, 'a/0.part')).toBe(text);
    expect(await objects.size('a/0.part')).toBe(text.length);
    expect(await files()).toEqual(['0.part']);
    expect((await stat(join(directory, 'a/0.part'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(directory, 'a'))).mode & 0o777).toBe(0o700);
  });

  test('when it is empty', async () => {
    const { objects } = await openObjects();
    await objects.put('a/0.part', piecesOf(), 0);
    expect([await objects.size('a/0.part'), await textOf(objects, 'a/0.part')]).toEqual([0, '']);
  });

  test('again, in the place of what was there', async () => {
    const { objects, files } = await openObjects();
    await objects.put('a/0.part', piecesOf('first'), 5);
    await objects.put('a/0.part', piecesOf('second'), 6);
    expect(await textOf(objects, 'a/0.part')).toBe('second');
    expect(await files()).toEqual(['0.part']);
  });

  test('whole, when several send it at once', async () => {
    const { objects, files } = await openObjects();
    const texts = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(1_000));
    const pieces = (text: string) => text.match(/.{100}/g) ?? [];
    await Promise.all(texts.map((text) => objects.put('a/0.part', piecesOf(...pieces(text)), 1_000)));
    expect(texts).toContain(await textOf(objects, 'a/0.part'));
    expect(await files()).toEqual(['0.part']);
  });

  test('and read in parts, the last byte included', async () => {
    const { objects } = await openObjects();
    await objects.put('a/0', piecesOf('0123456789'), 10);
    expect(await textOf(objects, 'a/0', { start: 0, end: 0 })).toBe('0');
    expect(await textOf(objects, 'a/0', { start: 3, end: 9 })).toBe('3456789');
  });
});

describe('parts are joined', () => {
  const PARTS = ['a/0.0.part', 'a/0.1.part', 'a/0.2.part'];
  const openParts = async () => {
    const opened = await openObjects();
    for (const [index, part] of PARTS.entries()) await opened.objects.put(part, piecesOf(`part ${index};`), 7);
    return opened;
  };

  test('in their order, and are gone then; once more changes nothing', async () => {
    const { objects, files } = await openParts();
    for (let time = 0; time < 2; time += 1) {
      await objects.join(PARTS, 'a/0');
      expect(await textOf(objects, 'a/0')).toBe('part 0;part 1;part 2;');
      expect(await files()).toEqual(['0']);
    }
  });

  test('when there is one only; once more changes nothing', async () => {
    const { objects, files } = await openObjects();
    await objects.put('a/0.0.part', piecesOf('all'), 3);
    for (let time = 0; time < 2; time += 1) {
      await objects.join(['a/0.0.part'], 'a/0');
      expect(await textOf(objects, 'a/0')).toBe('all');
      expect(await files()).toEqual(['0']);
    }
  });

  test('to the end after a crash between joining and clearing away', async () => {
    const { objects, files } = await openParts();
    await objects.join(PARTS, 'a/0');
    await objects.put('a/0.2.part', piecesOf('part 2;'), 7);
    await objects.join(PARTS, 'a/0');
    expect(await textOf(objects, 'a/0')).toBe('part 0;part 1;part 2;');
    expect(await files()).toEqual(['0']);
  });

  test('but not when one is missing: the others stay', async () => {
    const { objects, files } = await openParts();
    await objects.remove('a/0.1.part');
    expect((await rejectionOf(Error, objects.join(PARTS, 'a/0'))).message).toContain('ENOENT');
    expect((await rejectionOf(Error, objects.join(['a/1.0.part'], 'a/1'))).message).toContain('ENOENT');
    expect((await files()).toSorted()).toEqual(['0.0.part', '0.2.part']);
  });
});

test('what is under a prefix is removed together, and what is not there already is', async () => {
  const { objects, files } = await openObjects();
  for (const key of ['a/0', 'a/1.0.part', 'ab/0']) await objects.put(key, piecesOf('abc'), 3);
  await objects.remove('a');
  await objects.remove('a');
  await objects.remove('c/0');
  expect(await files()).toEqual(['0']);
  expect(await objects.size('ab/0')).toBe(3);
});
