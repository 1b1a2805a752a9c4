import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import { startForgetting, startLoop } from '../../../platform/loop.ts';
import * as store from '../receipts-store.ts';
import { type Considered, type Receipt, toReceipt } from '../receipts-wire.ts';
import { given } from './request-context.ts';

const KEPT_FOR_MS = 3_600_000;
const WRITE_EVERY_MS = 1_000;
const WRITTEN_AT_ONCE_MAX = 500;
/** What waits to be written when the database does not take it; more is left out. */
const WAITING_MAX = 5_000;

type Stage = Exclude<keyof Receipt['stages_ms'], 'answered'>;

/** A receipt while its request is under way. */
export interface Draft {
  /** Notes that a stage has been reached; the first time counts. */
  reach(stage: Stage): void;
  /** Notes what was looked at; of several rounds, the last counts. */
  consider(lobbies: Considered[]): void;
  /** Notes what was decided before anybody was seated. */
  note(decisions: Decisions): void;
  /** Notes where it is searched, by which version: of several the last counts, and what the others verified does not. */
  search(version_id: string, regions: string[] | undefined): void;
}

type Decisions = Pick<Receipt, 'captcha' | 'verification'>;

/** A request for seats, as its receipt says it. */
export type Asked = Pick<Receipt, 'ray_id' | 'kind' | 'version_id' | 'request'> & { namespace_id: string };

export interface ReceiptsDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  /** How many receipts of a second are kept; the other requests of that second have none. */
  receipts_per_second_max: number;
}

export type Receipts = ReturnType<typeof createReceipts>;

/**
 * Keeps why requests for seats came out as they did, for an hour. They are written a little later than the answer, many at
 * once: a player does not wait for his receipt, and one that a crash takes is missed by nobody.
 */
export function createReceipts(dependencies: ReceiptsDependencies) {
  const { database, clock, events, receipts_per_second_max } = dependencies;
  const { queries } = database;
  let waiting: store.ReceiptRow[] = [];
  let counted_second = 0;
  let count = 0;

  /** Whether one more receipt is kept in this second. */
  function takeTurn(): boolean {
    const second = Math.floor(clock.now().getTime() / 1_000);
    if (second !== counted_second) count = 0;
    counted_second = second;
    count += 1;
    return count <= receipts_per_second_max && waiting.length < WAITING_MAX;
  }

  return {
    /**
     * Does the work of a request and keeps its receipt, if this one is kept: `ask` says what of, and the work is given where
     * to note its steps.
     */
    async keep<Answer extends { lobby: { lobby_id: string } }>(
      ask: () => Asked,
      work: (draft: Draft | undefined) => Promise<{ answer: Answer; is_new: boolean }>,
    ): Promise<Answer> {
      if (!takeTurn()) return (await work(undefined)).answer;
      const { namespace_id, ...said } = ask();
      let { version_id } = said;
      let { regions } = said.request;
      const create_ts = clock.now();
      const started = performance.now();
      const elapsed = () => Math.round((performance.now() - started) * 100) / 100;
      const stages: Partial<Record<Stage, number>> = {};
      let considered: Considered[] = [];
      let rounds = 0;
      const decisions: Decisions = {};
      const draft: Draft = {
        reach(stage) {
          stages[stage] ??= elapsed();
        },
        consider(lobbies) {
          considered = lobbies;
          rounds += 1;
        },
        note(more) {
          Object.assign(decisions, more);
        },
        search(by, searched) {
          if (by !== version_id) {
            delete decisions.verification;
            delete stages.verified;
          }
          version_id = by;
          regions = searched;
        },
      };
      const write = (outcome: Receipt['outcome']) => {
        const receipt = {
          ...said,
          version_id,
          request: { ...said.request, ...given({ regions }) },
          create_ts: create_ts.toISOString(),
          considered,
          ...decisions,
          rounds,
          outcome,
          stages_ms: { ...stages, answered: elapsed() },
        };
        waiting.push({ ray_id: said.ray_id, namespace_id, create_ts, receipt });
      };
      try {
        const { answer, is_new } = await work(draft);
        write({ lobby_id: answer.lobby.lobby_id, is_new });
        return answer;
      } catch (error) {
        write({ code: error instanceof ServiceError ? error.code : 'ERROR' });
        throw error;
      }
    },
    /** Throws MATCHMAKER_RECEIPT_NOT_FOUND: there was no such request, it was not kept, or it is too long ago. */
    async get(namespace_id: string, ray_id: string): Promise<Receipt> {
      const own = waiting.find((row) => row.ray_id === ray_id && row.namespace_id === namespace_id);
      const row = own ?? (await store.selectReceipt(queries, namespace_id, ray_id));
      if (!row) throw new ServiceError('MATCHMAKER_RECEIPT_NOT_FOUND', {});
      return toReceipt(row);
    },
    /** The newest 64 that were made before a moment. */
    async list(namespace_id: string, before: Date | undefined): Promise<Receipt[]> {
      return (await store.selectReceipts(queries, namespace_id, before)).map(toReceipt);
    },
    /** Writes what waits, and forgets what is old. */
    startKeeping(signal: AbortSignal): { stopped: Promise<void> } {
      const loop = { signal, events };
      const writing = startLoop({
        ...loop,
        name: 'receipts',
        every_ms: WRITE_EVERY_MS,
        step: write,
      });
      const forgetting = startForgetting({
        ...loop,
        name: 'old-receipts',
        forget: () => store.deleteReceiptsBefore(queries, after(clock.now(), -KEPT_FOR_MS)),
      });
      const stopped = Promise.all([writing.stopped, forgetting.stopped]).then(async () => {
        await write();
      });
      return { stopped };
    },
  };

  async function write(): Promise<number> {
    while (waiting.length > 0) {
      const rows = waiting.slice(0, WRITTEN_AT_ONCE_MAX);
      await store.insertReceipts(queries, rows);
      waiting = waiting.slice(rows.length);
    }
    return 0;
  }
}
