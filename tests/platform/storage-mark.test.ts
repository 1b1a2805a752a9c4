import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cp, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import type { Finding } from '../../src/platform/findings.ts';
import { createDiskObjects } from '../../src/platform/objects/disk.ts';
import { compareStorage } from '../../src/platform/objects/storage-mark.ts';
import { createDiskSpace, type DiskSpace } from '../../src/platform/system/disk-space.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { mountSmallDisk } from '../support/objects/small-disk.ts';
import { makeDataDirectory, openTestService } from '../support/service.ts';

/** What the first process on a database stores, and others compare with it. */
const FIRST = 'first on a';

describe('storage: a process that starts on a database', () => {
  const opened = new AsyncDisposableStack();
  let parent: string;
  let database: Database;
  beforeAll(async () => {
    parent = await makeDataDirectory();
    opened.defer(() => rm(parent, { recursive: true }));
    const { address } = opened.use(await openTestDatabase());
    database = opened.use(openDatabase(address, 5));
    expect(await start('first', FIRST)).toEqual({ warning: undefined, events: [] });
  });
  afterAll(() => opened.disposeAsync());

  const at = (...path: string[]) => join(parent, ...path);
  const marksIn = (folder: string) => readdir(at(folder, 'storage-marks'));

  async function start(folder: string, location: string, space?: DiskSpace) {
    const events: ServiceEvent[] = [];
    const emit = (event: ServiceEvent) => void events.push(event);
    await mkdir(at(folder), { recursive: true });
    const objects = createDiskObjects(at(folder), space);
    return {
      warning: await compareStorage({ queries: database.queries, objects, location, events: { emit } }),
      events,
    };
  }

  test('with the same files as before gets no warning, and adds no mark', async () => {
    const marks = await marksIn('first');
    expect(await start('first', FIRST)).toEqual({ warning: undefined, events: [] });
    expect(await marksIn('first')).toEqual(marks);
    expect(marks).toHaveLength(1);
  });

  test('with files of other programs beside the mark gets no warning', async () => {
    const marks = await marksIn('first');
    for (const name of ['.nfs0000', 'README', '0-readme.txt']) await writeFile(at('first', 'storage-marks', name), '');
    expect(await start('first', FIRST)).toEqual({ warning: undefined, events: [] });
    for (const name of ['.nfs0000', 'README', '0-readme.txt']) await rm(at('first', 'storage-marks', name));
    expect(await marksIn('first')).toEqual(marks);
  });

  test('with the same files at another path (shared, moved or restored) gets no warning', async () => {
    await symlink(at('first'), at('shared'));
    await cp(at('first'), at('copied'), { recursive: true });
    for (const folder of ['shared', 'copied']) expect((await start(folder, `${folder} on b`)).events).toEqual([]);
  });

  test('with other files gets a warning each time, with both storages and what to do', async () => {
    await start('first', FIRST);
    const [first_mark] = await marksIn('first');
    for (let times = 0; times < 2; times += 1) {
      const { warning, events } = await start('other', 'other on b');
      expect(warning).toMatchObject({ code: 'STORAGE_DIFFERS', advice: expect.stringContaining('Share') });
      const [other_mark] = await marksIn('other');
      expect(events).toEqual([
        {
          event: 'storage_differs',
          location: 'other on b',
          mark: other_mark ?? '',
          location_of_database: FIRST,
          mark_of_database: first_mark ?? '',
          advice: `Share that storage, or use one bucket for all processes. If these are the same files, put an empty file storage-marks/${first_mark} beside them.`,
        },
      ]);
    }
    // The advice in the warning works.
    await writeFile(at('other', 'storage-marks', first_mark ?? ''), '');
    expect(await start('other', 'other on b')).toEqual({ warning: undefined, events: [] });
    await start('first', FIRST);
  });

  test('with a full disk starts, and reports that nothing was compared', async () => {
    const events = { emit() {} };
    const full = createDiskSpace({ directory: parent, reserve_bytes: Number.MAX_SAFE_INTEGER, events });
    const { warning, events: emitted } = await start('full', 'full on c', full);
    expect(warning).toBeUndefined();
    expect(emitted).toMatchObject([{ event: 'storage_not_compared', location: 'full on c' }]);
  });

  test('with a disk that takes no more files starts, and reports that nothing was compared', async () => {
    // Enough for the disk's own directory and the folder of the objects, and not for the mark.
    await using disk = await mountSmallDisk(1, 2);
    if (!disk) {
      console.log('Not tried: a disk that takes no more files (this user may not mount a file system).');
      return;
    }
    await symlink(disk.directory, at('no-more-files'));
    const { warning, events } = await start(join('no-more-files', 'objects'), 'no more files on d');
    expect(warning).toBeUndefined();
    expect(events).toMatchObject([{ event: 'storage_not_compared', location: 'no more files on d' }]);
  });

  test('together with others, all with one new storage, gets no warning', async () => {
    await database.queries.execute(sql`delete from object_storage`);
    const all = await Promise.all(Array.from({ length: 5 }, () => start('new', 'new on a')));
    expect(all.flatMap(({ events }) => events)).toEqual([]);
    // A database without a mark takes that of the process, whatever it had before.
    expect((await start('first', FIRST)).warning?.code).toBe('STORAGE_DIFFERS');
  });
});

test('storage: a second service with files of its own is ready, and its health reports them', async () => {
  await using first = await openTestService();
  await using second = await openTestService({}, { database_of: first });
  const codesOf = ({ warnings = [] }: { warnings?: Finding[] }) => warnings.map(({ code }) => code);
  expect(codesOf((await first.api.get('/health/ready')).body)).not.toContain('STORAGE_DIFFERS');
  const { status, body } = await second.api.get('/health/ready');
  expect([status, body.status, codesOf(body)]).toEqual([200, 'ok', expect.arrayContaining(['STORAGE_DIFFERS'])]);
  expect(second.events.filter(({ event }) => event === 'storage_differs')).toHaveLength(1);
}, 300_000);
