import { after, type Clock } from '../../platform/clock.ts';
import { type Database, LOCKS } from '../../platform/database/database.ts';
import { readSnapshot } from '../../platform/database/snapshot.ts';
import { transactUnlessLocked } from '../../platform/database/unless-locked.ts';
import type { Events } from '../../platform/events.ts';
import { toCallersError } from '../../platform/http/answers.ts';
import { startDeletingOld, startLoop } from '../../platform/loop.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../platform/units.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { SeatRequestKind } from '../seat-request-kinds.ts';
import { topics } from '../topics.ts';
import { bySteps, emptyCounts, merge, percentileOf, startOfStep } from './rules.ts';
import * as store from './store.ts';
import type { CounterRow, Counts, MinuteCounterRow } from './tables.ts';
import { type CountedMinute, createTally } from './tally.ts';

const LOOP = 'counters';
/** Minutes are kept for this long, then as parts of their hours. */
const MINUTES_KEPT_FOR_MS = DAY_MS;
const HOURS_KEPT_FOR_MS = 7 * DAY_MS;
/** How long after the end of a minute it is stored: the clocks of processes differ. */
const STORED_AFTER_MS = 500;
/** How long after its end a minute is stored, at most. */
const STORED_WITHIN_MS = 5_000;
/** The `counted_by` of players and lobbies, which the first process of a minute stores for all. */
const COUNTED_FOR_ALL = '00000000-0000-0000-0000-000000000000';

/** The periods that can be read, and the steps of each. */
export const PERIODS = {
  hour: { length_ms: HOUR_MS, step_ms: MINUTE_MS },
  day: { length_ms: DAY_MS, step_ms: 5 * MINUTE_MS },
  week: { length_ms: 7 * DAY_MS, step_ms: HOUR_MS },
} as const;
export type Period = keyof typeof PERIODS;

/** The number of players with a seat, and of lobbies, of a namespace. */
export interface Population {
  namespace_id: string;
  players: number;
  lobbies: number;
}

/** Counts of a namespace in one interval, with the median and the 95th percentile of its finds. */
export interface CountedStep {
  start_ts: Date;
  counts: Counts;
  find_p50_ms: number | undefined;
  find_p95_ms: number | undefined;
}

export interface CountersDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  /** Returns the number of players and lobbies of each namespace that has lobbies. */
  readPopulations(): Promise<Population[]>;
  /** Throws IDENTITY_NOT_ADMIN unless the caller is an administrator. */
  requireAdministrator(caller: CallerOf<'identity'>): Promise<void>;
}

export type Counters = ReturnType<typeof createCounters>;

/**
 * Creates the counters of namespaces. Requests for seats are counted in memory; each minute is stored once it is over, in
 * one statement for all namespaces, so no request waits for that. A crash loses what was not stored: usually less than a minute.
 */
export function createCounters(dependencies: CountersDependencies) {
  const { database, clock, events, readPopulations, requireAdministrator } = dependencies;
  const { queries } = database;
  const tally = createTally(() => clock.now().getTime());

  /** Stores the minutes that are over, and how many players and lobbies there are now. */
  async function storeMinutes(): Promise<void> {
    const minutes = tally.take({ is_last: false });
    try {
      await store.insertMinutes(database, [...minutes.map(toRow), ...(await readPopulationRows())]);
    } catch (error) {
      tally.giveBack(minutes);
      throw error;
    }
  }

  /** Stores all minutes, also the current one, when the service stops. Without a database they are lost. */
  async function storeLast(): Promise<void> {
    try {
      await store.insertMinutes(database, tally.take({ is_last: true }).map(toRow));
    } catch (cause) {
      events.emit({ event: 'loop_failed', loop: LOOP, failures: 1, cause });
    }
  }

  function toRow({ counts, ...minute }: CountedMinute): MinuteCounterRow {
    return { ...minute, ...counts };
  }

  async function readPopulationRows(): Promise<MinuteCounterRow[]> {
    const start_ts = startOfStep(clock.now(), MINUTE_MS);
    const populations = await readPopulations();
    return populations.map(({ namespace_id, players, lobbies }) => ({
      namespace_id,
      start_ts,
      counted_by: COUNTED_FOR_ALL,
      ...emptyCounts(),
      players,
      lobbies,
    }));
  }

  /** Moves a batch of old minutes into their hours, and deletes old hours. Returns how many rows; more may remain. */
  async function moveOld(): Promise<number> {
    const now = clock.now();
    const moved = await transactUnlessLocked(database, LOCKS.counters, async (tx) => {
      const minutes = await store.takeMinutesBefore(tx, startOfStep(after(now, -MINUTES_KEPT_FOR_MS), HOUR_MS));
      const by_namespace = Map.groupBy(minutes, ({ namespace_id }) => namespace_id);
      const hours = [...by_namespace].flatMap(([namespace_id, rows]) =>
        bySteps(rows, HOUR_MS).map(({ start_ts, counts }) => ({ namespace_id, start_ts, ...counts })),
      );
      const keyOf = (row: { namespace_id: string; start_ts: Date }) => `${row.namespace_id} ${row.start_ts.getTime()}`;
      const known = new Map<string, Counts>((await store.selectSameHours(tx, hours)).map((row) => [keyOf(row), row]));
      await store.upsertHours(
        tx,
        hours.map((hour) => ({ ...hour, ...merge(hour, known.get(keyOf(hour)) ?? emptyCounts()) })),
      );
      return minutes.length + (await store.deleteHoursBefore(tx, after(now, -HOURS_KEPT_FOR_MS)));
    });
    return moved.is_locked ? 0 : moved.result;
  }

  /**
   * Returns the rows of hours and minutes as of one moment, so that no request is missed or counted twice while minutes are
   * moved into their hours.
   */
  function selectOfOneMoment(namespace_id: string, from: Date): Promise<CounterRow[]> {
    return readSnapshot(database, async (tx) => [
      ...(await store.selectHours(tx, namespace_id, from)),
      ...(await store.selectMinutes(tx, namespace_id, from)),
    ]);
  }

  /** What a namespace counted, in steps. Watchable. */
  const counted: Watchable<{ namespace_id: string; period: Period }, CountedStep[]> = {
    topics: ({ namespace_id }) => [topics.countersOf(namespace_id)],
    async read({ namespace_id, period }) {
      const { length_ms, step_ms } = PERIODS[period];
      const from = startOfStep(after(clock.now(), -length_ms), step_ms);
      const has_hours = length_ms > MINUTES_KEPT_FOR_MS;
      const rows = has_hours
        ? await selectOfOneMoment(namespace_id, from)
        : await store.selectMinutes(queries, namespace_id, from);
      return bySteps(rows, step_ms).map((step) => ({
        ...step,
        find_p50_ms: percentileOf(step.counts.find_times, 0.5),
        find_p95_ms: percentileOf(step.counts.find_times, 0.95),
      }));
    },
  };

  /** The last read of what all namespaces counted, and the minute for which it is kept. */
  let of_all: { minute_ms: number; minutes: Promise<store.CountedMinuteOfAll[]> } | undefined;

  /** Reads once for all callers until the next minute is stored, because it reads the minutes of every namespace. */
  function readOfAll(): Promise<store.CountedMinuteOfAll[]> {
    const now = clock.now();
    const minute_ms = startOfStep(after(now, -STORED_WITHIN_MS), MINUTE_MS).getTime();
    if (of_all?.minute_ms === minute_ms) return of_all.minutes;
    const minutes = store.selectMinutesOfAll(queries, startOfStep(after(now, -HOUR_MS), MINUTE_MS));
    const reading = { minute_ms, minutes };
    of_all = reading;
    minutes.catch(() => {
      if (of_all === reading) of_all = undefined;
    });
    return minutes;
  }

  return {
    counted,
    /** Returns what all namespaces counted within the last hour, by minutes. Throws IDENTITY_NOT_ADMIN. */
    async ofAll(caller: CallerOf<'identity'>): Promise<store.CountedMinuteOfAll[]> {
      await requireAdministrator(caller);
      return await readOfAll();
    },
    /** Returns what this process has counted since its start. */
    totals: tally.totals,
    /** Runs a request for a seat, and counts how it ended. */
    async count<Answer>(kind: SeatRequestKind, namespace_id: string, work: () => Promise<Answer>): Promise<Answer> {
      const started = performance.now();
      try {
        const answer = await work();
        tally.countSeated(namespace_id, kind, performance.now() - started);
        return answer;
      } catch (error) {
        tally.countRefused(namespace_id, toCallersError(error).code);
        throw error;
      }
    },
    /** Starts the loops that store minutes, and move old ones into their hours. */
    startKeeping(signal: AbortSignal): { stopped: Promise<void> } {
      const storing = startLoop({
        name: LOOP,
        every_ms: () => MINUTE_MS - (clock.now().getTime() % MINUTE_MS) + STORED_AFTER_MS,
        signal,
        events,
        async step() {
          await storeMinutes();
          return 0;
        },
      });
      const moving = startDeletingOld({ name: 'old-counters', signal, events, deleteOld: moveOld });
      return { stopped: Promise.all([storing.stopped, moving.stopped]).then(storeLast) };
    },
  };
}
