import { isDeepStrictEqual } from 'node:util';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { startLoop } from '../../platform/loop.ts';
import type { Objects } from '../../platform/objects/objects.ts';
import { isShared, partObjectsOf } from './rules.ts';
import * as store from './store.ts';
import type { Splitting, UploadFileRow, UploadRow } from './tables.ts';

/** Time after which another request may complete an upload whose process has ended. */
const COMPLETION_LEASE_MS = 30_000;
const COMPLETION_RENEWED_EVERY_MS = 5_000;
/**
 * Maximum number of possible ends that a lease remembers, one for each unanswered request to extend it. The lease is over
 * before more are sent.
 */
const LEASE_ENDS_MAX = 16;

/** Callbacks of the feature that uses a kind of upload, for when one is completed or removed. */
export interface UploadPurpose {
  /** Inspects the files before the upload counts as complete. Throws to refuse it. May run twice. */
  inspect(upload_id: string): Promise<void>;
  /** Runs in the transaction that completes the upload. */
  complete(tx: Tx, upload_id: string, now: Date): Promise<void>;
  /** Removes what `inspect` left of an upload that will never be complete. May run twice. */
  discard?(upload_id: string): Promise<void>;
}

export interface CompletionDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  objects: Objects;
}

/** Creates the completion of uploads. One request at a time has the right to complete an upload: a lease. */
export function createCompletion({ database, clock, events, objects }: CompletionDependencies) {
  /** Runs work under the exclusive right to complete the upload. Returns false if another request has it. */
  async function withLease(upload_id: string, work: (lease: store.CompletionLease) => Promise<void>): Promise<boolean> {
    const now = clock.now();
    const endAfter = (from: Date) => after(from, COMPLETION_LEASE_MS);
    const lease = { upload_id, ends: [endAfter(now)] };
    if (!(await store.claimCompletion(database.queries, upload_id, { now, until: endAfter(now) }))) return false;
    const done = new AbortController();
    const renewal = startLoop({
      name: 'upload-completion',
      every_ms: COMPLETION_RENEWED_EVERY_MS,
      signal: done.signal,
      events,
      async step() {
        const end = endAfter(clock.now());
        lease.ends = [...lease.ends, end].slice(-LEASE_ENDS_MAX);
        if (await store.extendCompletion(database.queries, lease, end)) lease.ends = [end];
        return 0;
      },
    });
    const stop = async () => {
      done.abort();
      await renewal.stopped;
    };
    try {
      await work(lease);
      await stop();
    } catch (error) {
      await stop();
      await store.releaseCompletion(database.queries, lease);
      throw error;
    }
    return true;
  }

  /**
   * Completes an upload: checks that all parts have arrived, lets its purpose inspect it, and marks it as complete with what
   * the purpose and `inTransaction` do. Returns false if another request completes it.
   */
  async function complete(
    upload: UploadRow,
    purpose: UploadPurpose,
    inTransaction?: (tx: Tx) => Promise<void>,
  ): Promise<boolean> {
    const { upload_id } = upload;
    return await withLease(upload_id, async (lease) => {
      const files = await store.selectFiles(database.queries, upload_id);
      const stored = await objects.list(upload_id);
      const kept = keysOf(files, upload, stored);
      await purpose.inspect(upload_id);
      await database.transact(async (tx) => {
        await purpose.complete(tx, upload_id, clock.now());
        await inTransaction?.(tx);
        // After long work the lease may be over. Then another request may have it, and perhaps removes the files.
        if (!(await store.markComplete(tx, lease, clock.now()))) throw new ServiceError('UPLOAD_BUSY', {});
        // Or parts may have been sent again, which were not inspected.
        const is_same = isDeepStrictEqual(await store.selectFiles(tx, upload_id), files);
        if (!is_same) throw new ServiceError('UPLOAD_BUSY', {});
      });
      // The upload is complete now, also if this fails.
      const superseded = [...stored.keys()].filter((key) => !kept.has(key));
      await objects.remove(superseded).catch((cause: unknown) => {
        events.emit({ event: 'superseded_parts_not_removed', upload_id, cause });
      });
    });
  }

  return { withLease, complete };
}

/** Returns the own objects of the files. Throws UPLOAD_INCOMPLETE if one is missing, or its size differs from the announced one. */
function keysOf(files: UploadFileRow[], splitting: Splitting, stored: Map<string, number>): Set<string> {
  const keys = new Set<string>();
  const own_files = files.filter((file) => !isShared(file));
  for (const { part, key } of own_files.flatMap((file) => partObjectsOf(file, splitting))) {
    if (key === undefined || stored.get(key) !== part.content_length) {
      const error = `the part of ${JSON.stringify(part.path)} at byte ${part.byte_offset} is missing`;
      throw new ServiceError('UPLOAD_INCOMPLETE', { error });
    }
    keys.add(key);
  }
  return keys;
}
