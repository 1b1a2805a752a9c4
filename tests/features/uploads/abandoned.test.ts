import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { topics } from '../../../src/features/topics.ts';
import * as store from '../../../src/features/uploads/store.ts';
import { createUploads, type Uploads } from '../../../src/features/uploads/uploads.ts';
import { after } from '../../../src/platform/clock.ts';
import { type Database, openDatabase, type Tx } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { createDiskObjects } from '../../../src/platform/objects/disk.ts';
import type { Objects } from '../../../src/platform/objects/objects.ts';
import { createPresigner } from '../../../src/platform/objects/presign.ts';
import { readVersions } from '../../../src/platform/watch/versions.ts';
import { createTestClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;
const LEASE_MS = 30_000;
/** The most uploads that one step removes. */
const CONCURRENCY = 100;
const KIND = 'identity_avatar';

let opened: AsyncDisposableStack;
let database: Database;
let directory: string;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  database = opened.use(openDatabase(opened.use(await openTestDatabase()).address, 4));
  directory = await mkdtemp(join(tmpdir(), 'muster-objects-'));
  opened.defer(() => rm(directory, { recursive: true }));
});
afterAll(() => opened.disposeAsync());

const clock = createTestClock();
const key = { kty: 'oct', k: Buffer.alloc(32, 'k').toString('base64url') };
let uploads: Uploads;
/** The upload addresses, by upload. */
const urls = new Map<string, string[]>();
let events: ServiceEvent[];
/** What the purpose of the uploads does to inspect one, and to discard one. */
let inspect: (upload_id: string) => Promise<void>;
let discard: (upload_id: string) => Promise<void>;
/** What the storage does to remove objects. */
let remove: Objects['remove'];

beforeEach(() => {
  events = [];
  inspect = async () => {};
  discard = async () => {};
  const objects = createDiskObjects(directory);
  remove = objects.remove;
  uploads = createUploads({
    database,
    clock,
    events: { emit: (event) => void events.push(event) },
    objects: { ...objects, remove: (keys) => remove(keys) },
    presigner: createPresigner(key, clock, 'http://here'),
  });
  uploads.setPurpose(KIND, {
    inspect: (upload_id) => inspect(upload_id),
    async complete() {},
    discard: (upload_id) => discard(upload_id),
  });
});

/** Prepares an upload of one byte. */
const prepare = (tx: Tx) =>
  uploads.prepare(tx, { kind: KIND, is_multipart: false, identity_id: crypto.randomUUID() }, [
    { path: 'a.png', content_length: 1 },
  ]);

/** Prepares an upload and sends its content. */
async function send(): Promise<string> {
  const { upload_id, unsent } = await database.transact(prepare);
  const presigned_requests = await uploads.presign(unsent);
  urls.set(
    upload_id,
    presigned_requests.map(({ url }) => url),
  );
  for (const { url } of presigned_requests) await uploads.receive(url, new Blob(['x']).stream());
  return upload_id;
}

/** Removes abandoned uploads, as of one day later. */
async function cleanUp(isDone = () => true): Promise<void> {
  // Younger than all others, which may have the same millisecond.
  clock.advance(1_000);
  const last = await send();
  clock.advance(DAY_MS + 1);
  await cleanUpUntil(() => removed().includes(last) && isDone());
}

/** Runs the cleaning until it has done something, such as the removal of the youngest upload: that is the last. */
async function cleanUpUntil(isDone: () => boolean): Promise<void> {
  const stop = new AbortController();
  const cleaning = uploads.startCleaning(stop.signal);
  await waitFor(isDone, 'the last abandoned upload to be removed');
  stop.abort();
  await cleaning.stopped;
}

const removed = () => events.flatMap((event) => (event.event === 'upload_abandoned' ? [event.upload_id] : []));
const isKept = async (upload_id: string) => (await store.selectUpload(database.queries, upload_id)) !== undefined;
const versionOf = async (upload_id: string): Promise<number> => {
  const topic = topics.upload(upload_id);
  return (await readVersions(database.queries, [topic])).get(topic) ?? 0;
};
const hasBytes = async (upload_id: string) => (await readdir(directory)).includes(upload_id);
const refusal = async (upload_id: string) => (await rejectionOf(ServiceError, uploads.complete(upload_id))).code;

/** Lets the request that completes an upload lose its lease, as if its machine had been suspended. */
async function loseLease(upload_id: string): Promise<void> {
  await database.queries.execute(sql`update uploads set completing_until = null where upload_id = ${upload_id}`);
}

describe('uploads that are incomplete after a day', () => {
  test('are removed with their bytes and with what their purpose made of them', async () => {
    const discarded: string[] = [];
    discard = async (upload_id) => void discarded.push(upload_id);
    const complete = await send();
    await uploads.complete(complete);
    const abandoned = await send();
    const version = await versionOf(abandoned);
    await cleanUp();
    // The topic is removed too, and its watchers are notified.
    expect(version).toBe(1);
    expect(await versionOf(abandoned)).toBe(0);
    expect(removed()).toContain(abandoned);
    expect(discarded).toEqual(removed());
    expect([await isKept(abandoned), await hasBytes(abandoned)]).toEqual([false, false]);
    expect([await isKept(complete), await hasBytes(complete)]).toEqual([true, true]);
    expect(await refusal(abandoned)).toBe('UPLOAD_NOT_FOUND');
  });

  test('are not removed a moment sooner', async () => {
    const older = await send();
    clock.advance(60_000);
    const younger = await send();
    clock.advance(DAY_MS - 30_000);
    await cleanUpUntil(() => removed().includes(older));
    expect([await isKept(younger), await hasBytes(younger)]).toEqual([true, true]);
    await uploads.complete(younger);
  });

  test('are not removed during a late completion', async () => {
    const [late, last] = [await send(), await send()];
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    inspect = () => {
      asked.resolve();
      return answered.promise;
    };
    clock.advance(DAY_MS - 25_000);
    const completing = uploads.complete(late);
    await asked.promise;
    clock.advance(28_000);
    await cleanUpUntil(() => removed().includes(last));
    expect([await isKept(late), await hasBytes(late)]).toEqual([true, true]);
    answered.resolve();
    await completing;
    expect(await hasBytes(late)).toBe(true);
  });

  test('are not completed during their removal', async () => {
    const abandoned = await send();
    const refusals: string[] = [];
    discard = async (upload_id) => {
      if (upload_id === abandoned) refusals.push(await refusal(abandoned));
    };
    await cleanUp();
    expect(refusals).toEqual(['UPLOAD_BUSY']);
    expect([await isKept(abandoned), await hasBytes(abandoned)]).toEqual([false, false]);
  });

  test('are not completed during their removal by a request that lost its lease before', async () => {
    const abandoned = await send();
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    inspect = async () => {
      await loseLease(abandoned);
      asked.resolve();
      await answered.promise;
    };
    const completing = refusal(abandoned);
    await asked.promise;
    const refusals: string[] = [];
    discard = async (upload_id) => {
      if (upload_id !== abandoned) return;
      answered.resolve();
      refusals.push(await completing);
      // It has not ended the lease of the removal either.
      refusals.push(await refusal(abandoned));
    };
    await cleanUp();
    expect(refusals).toEqual(['UPLOAD_BUSY', 'UPLOAD_BUSY']);
    expect([await isKept(abandoned), await hasBytes(abandoned)]).toEqual([false, false]);
  });

  test('are not removed if they are completed after their removal lost its lease', async () => {
    const late = await send();
    discard = async (upload_id) => {
      if (upload_id !== late) return;
      await loseLease(late);
      await uploads.complete(late);
    };
    await cleanUp();
    expect(removed()).not.toContain(late);
    expect([await isKept(late), await hasBytes(late)]).toEqual([true, true]);
  });

  test('are all removed in any number; one whose removal fails is tried again', async () => {
    const stubborn = await send();
    const abandoned: string[] = [];
    await database.transact(async (tx) => {
      while (abandoned.length <= CONCURRENCY) abandoned.push((await prepare(tx)).upload_id);
    });
    let is_stubborn = true;
    discard = async (upload_id) => {
      if (upload_id === stubborn && is_stubborn) throw new Error('it cannot be removed');
    };
    const isReported = () => events.some((one) => one.event === 'loop_failed' && one.loop === 'abandoned-uploads');
    await cleanUp(isReported);
    expect(abandoned.filter((upload_id) => !removed().includes(upload_id))).toEqual([]);
    expect([await isKept(stubborn), await hasBytes(stubborn)]).toEqual([true, true]);
    is_stubborn = false;
    await cleanUp();
    expect(removed()).toContain(stubborn);
  }, 300_000);
});

test('uploads: as many abandoned ones as a step reads keep no later one, if they cannot be removed', async () => {
  const stubborn = new Set<string>();
  await database.transact(async (tx) => {
    while (stubborn.size < CONCURRENCY) stubborn.add((await prepare(tx)).upload_id);
  });
  let is_stubborn = true;
  discard = async (upload_id) => {
    if (is_stubborn && stubborn.has(upload_id)) throw new Error('it cannot be removed');
  };
  await cleanUp();
  expect(removed().filter((upload_id) => stubborn.has(upload_id))).toEqual([]);
  is_stubborn = false;
  await cleanUp();
  expect([...stubborn].filter((upload_id) => !removed().includes(upload_id))).toEqual([]);
}, 300_000);

test('uploads: the requests for many parts leave the event loop its turns', async () => {
  const upload_id = crypto.randomUUID();
  const parts = Array.from({ length: 10_000 }, (_, part_number) => {
    return { upload_id, file_number: 0, part_number, path: 'a.tar', byte_offset: part_number, content_length: 1 };
  });
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 0);
  expect(await uploads.presign({ parts, is_multipart: true })).toHaveLength(parts.length);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(0);
});

describe('an upload under completion', () => {
  test('cannot be completed by another caller at the same time', async () => {
    const upload = await send();
    const refusals: string[] = [];
    inspect = async () => void refusals.push(await refusal(upload));
    await uploads.complete(upload);
    expect(refusals).toEqual(['UPLOAD_BUSY']);
    await uploads.complete(upload);
  });

  test('may be completed by another process soon after the first one was killed', async () => {
    const upload = await send();
    const now = clock.now();
    expect(await store.claimCompletion(database.queries, upload, { now, until: after(now, LEASE_MS) })).toBe(true);
    clock.advance(LEASE_MS - 25_000);
    expect(await refusal(upload)).toBe('UPLOAD_BUSY');
    clock.advance(26_000);
    await uploads.complete(upload);
  });

  test('is complete although the removal of a superseded part fails, which is reported', async () => {
    const upload = await send();
    await writeFile(join(directory, upload, `0.0.${crypto.randomUUID()}`), 'x');
    const cause = new Error('the storage is away');
    remove = () => Promise.reject(cause);
    expect(await uploads.complete(upload)).toBe(true);
    expect(events).toEqual([{ event: 'superseded_parts_not_removed', upload_id: upload, cause }]);
    expect(await uploads.complete(upload)).toBe(false);
  });

  test('accepts no parts, neither then nor later: its content is unchanged, and no other object remains', async () => {
    const upload = await send();
    const [part = ''] = urls.get(upload) ?? [];
    const again = async () => (await rejectionOf(ServiceError, uploads.receive(part, new Blob(['y']).stream()))).code;
    const refusals: string[] = [];
    inspect = async () => void refusals.push(await again());
    await uploads.complete(upload);
    expect([...refusals, await again()]).toEqual(['UPLOAD_BUSY', 'UPLOAD_INVALID']);
    expect(await readdir(join(directory, upload))).toHaveLength(1);
    expect(await new Response(await uploads.read(upload, 0)).text()).toBe('x');
  });

  test('keeps its content if a part was being sent when the completion began', async () => {
    const upload = await send();
    const [part = ''] = urls.get(upload) ?? [];
    for (const when of ['while it is completed', 'when it is complete']) {
      const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const content = async function* () {
        begun.resolve();
        await ended.promise;
        yield Buffer.from('y');
      };
      const receiving = rejectionOf(ServiceError, uploads.receive(part, content()));
      await begun.promise;
      inspect = async () => {
        if (when === 'when it is complete') return;
        ended.resolve();
        await receiving;
        throw new ServiceError('UPLOAD_INVALID', { error: 'it is ugly' });
      };
      await uploads.complete(upload).catch(() => {});
      ended.resolve();
      expect((await receiving).code).toBe(when === 'when it is complete' ? 'UPLOAD_INVALID' : 'UPLOAD_BUSY');
      expect(await readdir(join(directory, upload))).toHaveLength(1);
    }
    expect(await new Response(await uploads.read(upload, 0)).text()).toBe('x');
  });

  test('beyond its lease is not completed with parts that were sent since', async () => {
    const upload = await send();
    const [part = ''] = urls.get(upload) ?? [];
    inspect = async () => {
      await loseLease(upload);
      await uploads.receive(part, new Blob(['y']).stream());
    };
    expect(await refusal(upload)).toBe('UPLOAD_BUSY');
    inspect = async () => {};
    await uploads.complete(upload);
    expect(await new Response(await uploads.read(upload, 0)).text()).toBe('y');
  });

  test('loses the files of processes that were killed while they received it', async () => {
    const upload = await send();
    await writeFile(join(directory, upload, `0.0.${crypto.randomUUID()}`), 'z');
    await uploads.complete(upload);
    expect(await readdir(join(directory, upload))).toHaveLength(1);
    expect(await new Response(await uploads.read(upload, 0)).text()).toBe('x');
  });

  test('that is refused for its content may be sent and completed again', async () => {
    const upload = await send();
    inspect = async () => {
      throw new ServiceError('UPLOAD_INVALID', { error: 'it is ugly' });
    };
    expect(await refusal(upload)).toBe('UPLOAD_INVALID');
    expect(await refusal(upload)).toBe('UPLOAD_INVALID');
    inspect = async () => {};
    await uploads.complete(upload);
  });
});

test('uploads: a part that arrives while its upload is removed is refused with UPLOAD_NOT_FOUND', async () => {
  const upload_id = await send();
  const [url = ''] = urls.get(upload_id) ?? [];
  async function* content() {
    await createDiskObjects(directory).removeFolder(upload_id);
    await database.queries.execute(sql`delete from uploads where upload_id = ${upload_id}`);
    yield Buffer.from('x');
  }
  expect((await rejectionOf(ServiceError, uploads.receive(url, content()))).code).toBe('UPLOAD_NOT_FOUND');
});
