import { setTimeout as sleep } from 'node:timers/promises';
import { after, type Clock } from '../../../../platform/clock.ts';
import type { Database } from '../../../../platform/database/database.ts';
import { ServiceError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import { toCallersError } from '../../../../platform/http/answers.ts';
import { startDeletingOld, startLoop } from '../../../../platform/loop.ts';
import type { Watchable } from '../../../../platform/watch/views.ts';
import { topics } from '../../../topics.ts';
import { KeptDraft, type ReceiptDraft, type ReceiptSubject, UNKEPT_DRAFT } from './receipt-draft.ts';
import * as store from './receipts-store.ts';
import { type Receipt, toReceipt } from './receipts-wire.ts';

const LOOP = 'receipts';
const KEPT_FOR_MS = 3_600_000;
/** How long the first receipt waits for others to be written with it. */
const GATHER_MS = 1_000;
const RECHECK_EVERY_MS = 60_000;
const WRITTEN_AT_ONCE_MAX = 500;
/** Maximum number of receipts that wait to be written. Further ones are dropped. */
const UNWRITTEN_MAX = 5_000;

export interface ReceiptsDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  /** Maximum number of receipts per second. Further requests of that second get none. */
  receipts_per_second_max: number;
}

export type Receipts = ReturnType<typeof createReceipts>;

/**
 * Creates the store of receipts. A receipt explains why a request for seats succeeded or failed, and is kept for an hour.
 * Receipts are written in batches after the answer, so no player waits for them, and a crash may lose some.
 */
export function createReceipts(dependencies: ReceiptsDependencies) {
  const { database, clock, events, receipts_per_second_max } = dependencies;
  const { queries } = database;
  let unwritten: store.ReceiptRow[] = [];
  let counted_second = 0;
  let count = 0;
  let wakeWriting = () => {};

  /** Counts a request. Returns whether it gets a receipt. */
  function countRequest(): boolean {
    const second = Math.floor(clock.now().getTime() / 1_000);
    if (second !== counted_second) count = 0;
    counted_second = second;
    count += 1;
    return count <= receipts_per_second_max && unwritten.length < UNWRITTEN_MAX;
  }

  async function write(): Promise<number> {
    while (unwritten.length > 0) {
      const rows = unwritten.slice(0, WRITTEN_AT_ONCE_MAX);
      await store.insertReceipts(queries, rows);
      unwritten = unwritten.slice(rows.length);
    }
    return 0;
  }

  /** Writes the last receipts. Without the database they are lost, which must not fail the stop of the service. */
  async function writeLast(): Promise<void> {
    try {
      await write();
    } catch (cause) {
      events.emit({ event: 'loop_failed', loop: LOOP, failures: 1, cause });
    }
  }

  function add(row: store.ReceiptRow): void {
    unwritten.push(row);
    wakeWriting();
  }

  async function keepReceipt<Answer>(
    draft: KeptDraft,
    work: (draft: ReceiptDraft) => Promise<Answer>,
  ): Promise<Answer> {
    try {
      const answer = await work(draft);
      add(draft.finish());
      return answer;
    } catch (error) {
      add(draft.finish({ code: toCallersError(error).code }));
      throw error;
    }
  }

  /** The newest 64 receipts of a namespace that match a filter. Watchable. */
  const list: Watchable<{ namespace_id: string } & store.ReceiptFilter, Receipt[]> = {
    topics: ({ namespace_id }) => [topics.receiptsOf(namespace_id)],
    read: async ({ namespace_id, ...filter }) =>
      (await store.selectReceipts(queries, namespace_id, filter)).map(toReceipt),
  };

  return {
    /**
     * Runs the work of a request. Keeps its receipt, unless this second already has its maximum of receipts, or too many
     * are not written yet.
     */
    withReceipt: <Answer>(
      describe: () => ReceiptSubject,
      work: (draft: ReceiptDraft) => Promise<Answer>,
    ): Promise<Answer> =>
      countRequest() ? keepReceipt(new KeptDraft(describe(), clock.now()), work) : work(UNKEPT_DRAFT),
    /** Returns the receipt of a request. Throws MATCHMAKER_RECEIPT_NOT_FOUND. */
    async get(namespace_id: string, ray_id: string): Promise<Receipt> {
      const isNamed = (row: store.ReceiptRow) => row.ray_id === ray_id && row.namespace_id === namespace_id;
      const row = unwritten.find(isNamed) ?? (await store.selectReceipt(queries, namespace_id, ray_id));
      if (!row) throw new ServiceError('MATCHMAKER_RECEIPT_NOT_FOUND', {});
      return toReceipt(row);
    },
    list,
    /** Starts the loops that write new receipts and delete old ones. */
    startWork(signal: AbortSignal): { stopped: Promise<void> } {
      const loop = { signal, events };
      const writing = startLoop({
        ...loop,
        name: LOOP,
        every_ms: RECHECK_EVERY_MS,
        async step() {
          if (unwritten.length > 0) await sleep(GATHER_MS, undefined, { signal });
          return await write();
        },
      });
      wakeWriting = writing.wake;
      const deleting = startDeletingOld({
        ...loop,
        name: 'old-receipts',
        deleteOld: () => store.deleteReceiptsBefore(queries, after(clock.now(), -KEPT_FOR_MS)),
      });
      return { stopped: Promise.all([writing.stopped, deleting.stopped]).then(writeLast) };
    },
  };
}
