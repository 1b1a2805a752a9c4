import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createUploads, type Uploads } from '../../../src/features/uploads/uploads.ts';
import { type Database, LOCKS, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { createDiskObjects } from '../../../src/platform/objects/disk.ts';
import type { Objects } from '../../../src/platform/objects/objects.ts';
import { createPresigner } from '../../../src/platform/objects/presign.ts';
import { openS3Objects } from '../../../src/platform/objects/s3.ts';
import { createTestClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { listBucket, openTestBucket, TEST_S3 } from '../../support/objects/s3.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { waitFor } from '../../support/wait.ts';

const KIND = 'identity_avatar';
const DAY_MS = 24 * 3_600_000;
const key = { kty: 'oct', k: Buffer.alloc(32, 'k').toString('base64url') };

/** A storage, and a way to list the uploads in it. */
interface Storage {
  objects: Objects;
  folders(): Promise<string[]>;
}

async function openDisk(opened: AsyncDisposableStack): Promise<Storage> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-objects-'));
  opened.defer(() => rm(directory, { recursive: true }));
  // Unfinished objects have a folder of their own.
  const folders = async () => (await readdir(directory)).filter((name) => name !== '.unfinished');
  return { objects: createDiskObjects(directory), folders };
}

async function openBucket(): Promise<Storage> {
  const { parsed } = await openTestBucket();
  const folders = async () => (await listBucket(parsed)).map((name) => name.split('/')[0] ?? '');
  return { objects: await openS3Objects(parsed), folders };
}

for (const where of ['disk', 'bucket']) {
  describe.skipIf(where === 'bucket' && TEST_S3 === undefined)(`discarded uploads (${where})`, () => {
    const clock = createTestClock();
    let opened: AsyncDisposableStack;
    let database: Database;
    let storage: Storage;
    let removeFolder: Objects['removeFolder'];
    let removeUnfinished: Objects['removeUnfinished'];
    let events: ServiceEvent[];
    let uploads: Uploads;
    /** Rounds of cleaning that have begun. */
    let rounds: number;
    let scope: string;
    beforeAll(async () => {
      opened = new AsyncDisposableStack();
      database = opened.use(openDatabase(opened.use(await openTestDatabase()).address, 4));
      storage = where === 'disk' ? await openDisk(opened) : await openBucket();
    });
    afterAll(() => opened.disposeAsync());
    beforeEach(() => {
      scope = crypto.randomUUID();
      events = [];
      rounds = 0;
      removeFolder = storage.objects.removeFolder;
      removeUnfinished = storage.objects.removeUnfinished;
      uploads = createUploads({
        database,
        clock,
        events: { emit: (event) => void events.push(event) },
        objects: {
          ...storage.objects,
          removeFolder: (folder) => removeFolder(folder),
          async removeUnfinished(before) {
            rounds += 1;
            await removeUnfinished(before);
          },
        },
        presigner: createPresigner(key, clock, 'http://here'),
      });
      uploads.setPurpose(KIND, { async inspect() {}, async complete() {} });
    });

    /** Sends an upload of this length, within a quota of 1 MiB in all. */
    async function send(content_length: number): Promise<string> {
      const limits = { day_bytes_max: 1_024 ** 3, kept_bytes_max: 1_024 ** 2 };
      const { upload_id, unsent } = await database.transact((tx) =>
        uploads.prepare(tx, { kind: KIND, is_multipart: false }, [{ path: 'a.png', content_length }], {
          scope,
          limits,
        }),
      );
      for (const { url } of await uploads.presign(unsent))
        await uploads.receive(url, new Blob(['x'.repeat(content_length)]).stream());
      return upload_id;
    }

    async function sendAndDiscard(content_length = 1): Promise<string> {
      const upload_id = await send(content_length);
      await uploads.complete(upload_id);
      await database.transact((tx) => uploads.discard(tx, upload_id));
      return upload_id;
    }

    /** Runs the cleaning until a condition is true. */
    async function cleanUntil(what: string, isDone: () => Promise<boolean> | boolean): Promise<void> {
      const stop = new AbortController();
      const cleaning = uploads.startCleaning(stop.signal);
      await waitFor(isDone, what);
      stop.abort();
      await cleaning.stopped;
    }

    const isGone = async (upload_ids: string[]) => {
      const folders = new Set(await storage.folders());
      return upload_ids.every((upload_id) => !folders.has(upload_id));
    };
    const refusalOf = async (work: Promise<unknown>) => (await rejectionOf(ServiceError, work)).code;

    test('are not found from then on and lose their bytes; others keep theirs', async () => {
      const kept = await send(1);
      await uploads.complete(kept);
      const discarded = await sendAndDiscard();
      expect(await refusalOf(uploads.get(discarded))).toBe('UPLOAD_NOT_FOUND');
      expect(await refusalOf(uploads.complete(discarded))).toBe('UPLOAD_NOT_FOUND');
      await cleanUntil('the bytes to be removed', () => isGone([discarded]));
      expect(await new Response(await uploads.read(kept, 0)).text()).toBe('x');
    });

    test('must be complete: an incomplete one is not discarded and can be completed', async () => {
      const upload_id = await send(1);
      await database.transact((tx) => uploads.discard(tx, upload_id));
      expect(await uploads.complete(upload_id)).toBe(true);
    });

    test('free their quota once they are removed; so do abandoned ones', async () => {
      const half = 512 * 1_024;
      const [discarded] = [await sendAndDiscard(half), await send(half)];
      expect(await refusalOf(send(1))).toBe('UPLOAD_QUOTA_REACHED');
      await cleanUntil('the bytes to be removed', () => isGone([discarded]));
      await waitFor(
        () =>
          send(half).then(
            () => true,
            () => false,
          ),
        'room in the quota',
      );
      expect(await refusalOf(send(1))).toBe('UPLOAD_QUOTA_REACHED');
      clock.advance(DAY_MS + 60_000);
      const abandoned = () => events.filter(({ event }) => event === 'upload_abandoned').length;
      await cleanUntil('both abandoned uploads to be removed', () => abandoned() >= 2);
      await send(half);
      await send(half);
    });

    test('keep their bytes while a backup is made, whose snapshot may name them', async () => {
      const discarded = await sendAndDiscard();
      await database.exclusively(LOCKS.backup, async () => {
        const stop = new AbortController();
        const cleaning = uploads.startCleaning(stop.signal);
        await waitFor(() => {
          cleaning.wake();
          return rounds >= 2;
        }, 'one round to end and another to begin');
        expect(await isGone([discarded])).toBe(false);
        stop.abort();
        await cleaning.stopped;
      });
      // PostgreSQL releases the lock when it sees the end of the connection, perhaps only after the first round.
      const stop = new AbortController();
      const cleaning = uploads.startCleaning(stop.signal);
      await waitFor(() => {
        cleaning.wake();
        return isGone([discarded]);
      }, 'the bytes to be removed');
      stop.abort();
      await cleaning.stopped;
    });

    const isReported = () => events.some(({ event }) => event === 'loop_failed');

    test('are removed also if unfinished objects cannot be removed', async () => {
      const discarded = [await sendAndDiscard()];
      removeUnfinished = async () => {
        throw new Error('they cannot be read');
      };
      await cleanUntil(
        'the upload to be removed, and the failure to be reported',
        async () => isReported() && (await isGone(discarded)),
      );
    });

    test('are all removed in any number; one whose removal fails is tried again', async () => {
      const discarded: string[] = [];
      for (let count = 0; count < 103; count += 1) {
        scope = crypto.randomUUID();
        discarded.push(await sendAndDiscard());
      }
      const stubborn = discarded.toSorted()[0] ?? '';
      const others = discarded.filter((upload_id) => upload_id !== stubborn);
      let is_stubborn = true;
      removeFolder = async (folder) => {
        if (folder === stubborn && is_stubborn) throw new Error('it cannot be removed');
        await storage.objects.removeFolder(folder);
      };
      await cleanUntil('the others to be removed', async () => isReported() && (await isGone(others)));
      expect(await isGone([stubborn])).toBe(false);
      is_stubborn = false;
      await cleanUntil('the last to be removed', () => isGone([stubborn]));
    }, 300_000);
  });
}
