import { dlopen } from 'bun:ffi';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readArchive } from '../../src/platform/backup/archive-reader.ts';
import { writeArchive } from '../../src/platform/backup/archive-writer.ts';
import { StartError } from '../../src/platform/errors.ts';
import { tryLock } from '../../src/platform/system/libc.ts';
import { mountSmallDisk } from '../support/objects/small-disk.ts';
import { rejectionOf } from '../support/refusal.ts';
import { IS_ROOT } from '../support/runtimes/runtimes.ts';
import { packTar, TAR_END } from '../support/tar.ts';

const { symbols: libc } = dlopen('libc.so.6', { setfsuid: { args: ['u32'], returns: 'i32' } });
const { signal } = new AbortController();
const OTHER_USER = 65_534;
/** Incompressible, so that damage at any place of the file changes content. */
const NOISE = crypto.getRandomValues(new Uint8Array(60_000));
/** The zeros at the end of a tar and the checksum of zstd, which carry no content, take fewer bytes. */
const TAIL_BYTES = 40;
const ENTRIES = {
  'first.json': Buffer.from('{}'),
  'objects/noise': Buffer.from(NOISE),
  'objects/empty': Buffer.alloc(0),
};

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-archive-'));
  path = join(directory, 'backup');
});
afterEach(() => rm(directory, { recursive: true }));

async function write(entries: Record<string, Buffer> = ENTRIES): Promise<void> {
  await writeArchive(path, { signal, onWritten() {}, onChecking() {} }, async ({ add }) => {
    for (const [name, content] of Object.entries(entries)) await add(name, [content], content.length);
  });
}

async function read(): Promise<Record<string, Buffer>> {
  const entries: Record<string, Buffer> = {};
  await readArchive(path, { signal }, async ({ name, content }) => {
    entries[name] = Buffer.concat(await Array.fromAsync(content));
    return undefined;
  });
  return entries;
}

const refusal = (work: Promise<unknown>) => rejectionOf(StartError, work);

describe('archive: a reader refuses', () => {
  const intact = async () => {
    await write();
    return readFileSync(path);
  };

  test('an archive that ends early, wherever it was cut', async () => {
    const whole = await intact();
    for (const bytes of [0, 1, 100, 30_000, 60_000, whole.length - TAIL_BYTES]) {
      writeFileSync(path, whole.subarray(0, bytes));
      expect((await refusal(read())).message).toStartWith(`${path} is not a backup, or is damaged: `);
    }
  });

  test('an archive with a changed bit, wherever it is', async () => {
    const whole = await intact();
    for (const offset of [0, 200, 1_000, 30_000, 60_000, whole.length - TAIL_BYTES]) {
      const damaged = Buffer.from(whole);
      damaged[offset] = (damaged[offset] ?? 0) ^ 1;
      writeFileSync(path, damaged);
      expect((await refusal(read())).message).toStartWith(`${path} is not a backup, or is damaged: `);
    }
  });

  test('an archive whose entries were changed and packed again', async () => {
    await intact();
    const end = await lastEntryOf(path);
    const entries = Object.entries(ENTRIES).map(([name, content]) => ({ name, content }));
    const CHANGES = {
      'its content differs from its digest': [
        [{ name: 'first.json', content: '[]' }, ...entries.slice(1), end],
        [...entries.slice(0, 2), end],
        [...entries.toReversed(), end],
        [{ ...entries[0], name: 'other.json' }, ...entries.slice(1), end],
      ],
      'its end is missing': [entries, []],
      'it continues after its end': [[...entries, end, { name: 'more', content: '' }]],
    };
    for (const [reason, archives] of Object.entries(CHANGES)) {
      for (const archive of archives) {
        writeFileSync(path, await Bun.zstdCompress(await packTar(archive as Parameters<typeof packTar>[0])));
        expect((await refusal(read())).message).toBe(
          `${path} is not a backup, or is damaged: ${reason}. Name another copy.`,
        );
      }
    }
    writeFileSync(path, await Bun.zstdCompress(await packTar([...entries, end])));
    expect(await read()).toEqual(ENTRIES);
  });

  test('other files', async () => {
    for (const content of ['', 'a text', TAR_END]) {
      writeFileSync(path, content);
      await refusal(read());
    }
    await rm(path);
    expect((await refusal(read())).message).toBe(
      `${path} cannot be read (ENOENT): check that it exists and this user may read it.`,
    );
  });
});

describe('archive: a writer refuses', () => {
  test('a path that exists, and leaves it as it is', async () => {
    writeFileSync(path, 'mine');
    expect((await refusal(write())).message).toBe(`${path} exists already: name another file, or move this one away.`);
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  test('a folder that does not exist', async () => {
    path = join(directory, 'missing/backup');
    expect((await refusal(write())).message).toStartWith(`The backup cannot be written at ${path}.unfinished (ENOENT)`);
  });

  test('a file that another writer is writing', async () => {
    expect(tryLock(openSync(`${path}.unfinished`, 'a'))).toBe(true);
    expect((await refusal(write())).message).toStartWith('Another backup is writing ');
  });

  test('an unfinished file that may belong to another user, and leaves it as it is', async () => {
    const other = join(directory, 'other');
    writeFileSync(other, 'mine');
    const advice = 'remove it, or name a file in a folder to which only this user can write.';
    symlinkSync(other, `${path}.unfinished`);
    expect((await refusal(write())).message).toBe(
      `The backup cannot be written at ${path}.unfinished (ELOOP): ${advice}`,
    );
    await rm(`${path}.unfinished`);
    linkSync(other, `${path}.unfinished`);
    expect((await refusal(write())).message).toBe(`${path}.unfinished is not a file of this user: ${advice}`);
    expect(readFileSync(other, 'utf8')).toBe('mine');
  });

  test('a pipe in place of the unfinished file, without waiting for its reader', async () => {
    expect(Bun.spawnSync(['mkfifo', `${path}.unfinished`]).exitCode).toBe(0);
    expect((await refusal(write())).message).toStartWith(
      `The backup cannot be written at ${path}.unfinished (ENXIO): remove it`,
    );
  });

  test.skipIf(!IS_ROOT)('an unfinished file of another user, who could read the backup', async () => {
    writeFileSync(`${path}.unfinished`, '');
    chownSync(`${path}.unfinished`, OTHER_USER, OTHER_USER);
    expect((await refusal(write())).message).toStartWith(`${path}.unfinished is not a file of this user: remove it`);
    expect(statSync(`${path}.unfinished`).uid).toBe(OTHER_USER);
  });

  test('a full disk, and says so', async () => {
    await using disk = await mountSmallDisk(1);
    if (!disk) return;
    path = join(disk.directory, 'backup');
    const makeNoise = () => Buffer.from(crypto.getRandomValues(new Uint8Array(NOISE.length)));
    const entries = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`objects/${index}`, makeNoise()]));
    expect((await refusal(write(entries))).message).toStartWith(
      `The backup cannot be written at ${path}.unfinished (ENOSPC)`,
    );
    expect(existsSync(`${path}.unfinished`)).toBe(false);
  });

  test('an entry that is shorter or longer than it was announced, and leaves no file', async () => {
    for (const size of [1, 3]) {
      const writing = writeArchive(path, { signal, onWritten() {}, onChecking() {} }, async ({ add }) => {
        await add('entry', [Buffer.from('ab')], size);
      });
      await expect(writing).rejects.toThrow(`broken invariant: entry has ${size} bytes`);
      expect([existsSync(path), existsSync(`${path}.unfinished`)]).toEqual([false, false]);
    }
  });
});

describe('archive', () => {
  test('is read as it was written, and only its user can read it, under any umask', async () => {
    const umask = process.umask(0);
    try {
      await write();
    } finally {
      process.umask(umask);
    }
    expect(await read()).toEqual(ENTRIES);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test.skipIf(!IS_ROOT)(
    'is written where new files of this user belong to another one, as on many network disks',
    async () => {
      chmodSync(directory, 0o777);
      // New files belong to this user of the thread.
      libc.setfsuid(OTHER_USER);
      const writing = write();
      libc.setfsuid(0);
      await writing;
      expect(await read()).toEqual(ENTRIES);
      expect(statSync(path).uid).toBe(OTHER_USER);
    },
  );

  test('replaces what a killed writer left', async () => {
    writeFileSync(`${path}.unfinished`, NOISE, { mode: 0o644 });
    await write();
    expect(await read()).toEqual(ENTRIES);
    expect([existsSync(`${path}.unfinished`), statSync(path).mode & 0o777]).toEqual([false, 0o600]);
  });

  test('is removed if its content fails, whose failure is thrown', async () => {
    const lost_connection = { code: 'ECONNRESET', syscall: 'read' };
    for (const failure of [new Error('a fault'), Object.assign(new Error('no database'), lost_connection)]) {
      async function* content() {
        yield NOISE;
        throw failure;
      }
      const writing = writeArchive(path, { signal, onWritten() {}, onChecking() {} }, ({ add }) =>
        add('entry', content(), 100_000),
      );
      expect(await rejectionOf(Error, writing)).toBe(failure);
      expect([existsSync(path), existsSync(`${path}.unfinished`)]).toEqual([false, false]);
    }
  });

  test('a reader throws what its caller throws, and reads no further if it is stopped', async () => {
    await write();
    const failure = new Error('the bucket is gone');
    const failing = readArchive(path, { signal }, async () => {
      throw failure;
    });
    expect(await rejectionOf(Error, failing)).toBe(failure);
    const names: string[] = [];
    await readArchive(path, { signal }, async ({ name }) => {
      names.push(name);
      return 'stop';
    });
    expect(names).toEqual(['first.json']);
  });
});

async function lastEntryOf(archive: string): Promise<{ name: string; content: Uint8Array }> {
  const tar = await Bun.zstdDecompress(await Bun.file(archive).bytes());
  const files = await new Bun.Archive(tar).files();
  const end = files.get('end.json');
  if (!end) throw new Error('an archive has an end');
  return { name: 'end.json', content: await end.bytes() };
}
