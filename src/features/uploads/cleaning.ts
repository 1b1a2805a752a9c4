import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isBackupRunning } from '../../platform/database/unless-locked.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Objects } from '../../platform/objects/objects.ts';
import { refundQuota } from './quota-store.ts';
import { quotaBytesOf } from './rules.ts';
import * as store from './store.ts';

const ABANDONED_AFTER_MS = 24 * 3_600_000;
const UPLOADS_AT_ONCE = 100;
const CLEAN_UP_EVERY_MS = 10 * 60_000;

interface CleaningDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  objects: Objects;
  /**
   * Runs work under the exclusive right to complete the upload. Returns false if another request has that right, or the
   * upload is complete.
   */
  withLease(upload_id: string, work: (lease: store.CompletionLease) => Promise<void>): Promise<boolean>;
  /** Removes what the inspection of an upload left, such as an unpacked build. */
  discardInspected(unused: store.UnusedUpload): Promise<void>;
}

/** Starts the loop that removes uploads not completed within a day, and discarded ones. */
export function startCleaning(dependencies: CleaningDependencies, signal: AbortSignal): Loop {
  const { database, clock, events, objects, withLease, discardInspected } = dependencies;

  /** Removes the objects first and the row last, so that the next run finds an interrupted removal. */
  async function remove(unused: store.UnusedUpload): Promise<void> {
    await objects.removeFolder(unused.upload_id);
    await database.transact(async (tx) => {
      const removed = await store.deleteUpload(tx, unused);
      if (removed?.quota_scope) await refundQuota(tx, removed.quota_scope, quotaBytesOf(removed));
    });
  }

  async function removeAbandoned(unused: store.UnusedUpload): Promise<void> {
    await withLease(unused.upload_id, async (lease) => {
      await discardInspected(unused);
      // If the lease was lost meanwhile, another request may have completed it.
      if (!(await database.transact((tx) => store.markAbandoned(tx, lease, clock.now())))) return;
      await remove(unused);
      events.emit({ event: 'upload_abandoned', upload_id: unused.upload_id });
    });
  }

  /** Removes each of the uploads, also after failures. Returns the failures. */
  async function removeEach(
    uploads: store.UnusedUpload[],
    removeOne: (unused: store.UnusedUpload) => Promise<void>,
  ): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const upload of uploads) {
      if (signal.aborted) break;
      await removeOne(upload).catch((cause: unknown) => failures.push(cause));
    }
    return failures;
  }

  async function cleanUnfinished(): Promise<unknown[]> {
    return await objects.removeUnfinished(after(clock.now(), -ABANDONED_AFTER_MS)).then(
      () => [],
      (cause: unknown) => [cause],
    );
  }

  async function cleanAbandoned(): Promise<unknown[]> {
    const failures: unknown[] = [];
    let last: store.AbandonedUpload | undefined;
    for (;;) {
      const now = clock.now();
      const wanted = { before: after(now, -ABANDONED_AFTER_MS), now, last, limit: UPLOADS_AT_ONCE };
      const abandoned = await store.selectAbandoned(database.queries, wanted);
      failures.push(...(await removeEach(abandoned, removeAbandoned)));
      last = abandoned.at(-1);
      if (abandoned.length < UPLOADS_AT_ONCE || signal.aborted) return failures;
    }
  }

  async function cleanDiscarded(): Promise<unknown[]> {
    const failures: unknown[] = [];
    let last: string | undefined;
    for (;;) {
      const discarded = await store.selectDiscarded(database.queries, { after: last, limit: UPLOADS_AT_ONCE });
      // Checked after the read: a backup that begins later does not include these uploads.
      if (await isBackupRunning(database.queries)) return failures;
      failures.push(...(await removeEach(discarded, remove)));
      last = discarded.at(-1)?.upload_id;
      if (discarded.length < UPLOADS_AT_ONCE || signal.aborted) return failures;
    }
  }

  return startLoop({
    name: 'abandoned-uploads',
    every_ms: CLEAN_UP_EVERY_MS,
    signal,
    events,
    async step() {
      const failures = [...(await cleanUnfinished()), ...(await cleanAbandoned()), ...(await cleanDiscarded())];
      if (failures.length > 0) {
        throw new AggregateError(failures, 'unfinished files, abandoned or discarded uploads could not be removed');
      }
      return 0;
    },
  });
}
