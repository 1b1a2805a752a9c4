import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { IS_LISTENER } from '../support/network/listeners.ts';
import {
  answerOfState,
  incrementNumber,
  openWatchingNode,
  type WatchingNode,
  watchNumbers,
} from '../support/watch/watching.ts';

let opened: AsyncDisposableStack;
let writer: Database;
let near: WatchingNode;
let far: WatchingNode;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  writer = opened.use(openDatabase(address, 8));
  near = opened.use(await openWatchingNode(address));
  far = opened.use(await openWatchingNode(address));
});
afterAll(async () => {
  await opened.disposeAsync();
});

interface Seen {
  view: number;
  number: number;
}

/** Watches a number, poll by poll, until it has this value. Returns all values that it has seen. */
async function follow(node: WatchingNode, name: string, until: number, caller_key: string): Promise<Seen[]> {
  const numbers = watchNumbers(node);
  const seen: Seen[] = [];
  let watch_index: string | undefined;
  for (;;) {
    const { view, watch } = await answerOfState(node, numbers, name, {
      watch_index,
      signal: AbortSignal.timeout(30_000),
      caller_key,
    });
    seen.push({ view, number: Number(watch.index.split('.')[1]) });
    if (view === until) return seen;
    if (watch.index === watch_index) throw new Error(`no change within the hold time at ${view} of ${until}`);
    watch_index = watch.index;
  }
}

const failed = new Error('rolled back');
const STEPS = {
  increment: (name: string) => incrementNumber({ database: writer }, name),
  async incrementAndFail(name: string) {
    const work = writer.transact(async (tx) => {
      await touch(tx, [`number:${name}`]);
      await tx.execute(sql`update numbers set number = number + 1000 where name = ${name}`);
      throw failed;
    });
    await work.catch((error: unknown) => {
      if (error !== failed) throw error;
    });
  },
  async touchOnly(name: string) {
    await writer.transact((tx) => touch(tx, [`number:${name}`]));
  },
};
type Step = keyof typeof STEPS;

const step = fc.constantFrom<Step>('increment', 'increment', 'increment', 'incrementAndFail', 'touchOnly');
const writers = fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 8 });

test('watch: with many concurrent writers all watchers see the last state, no state of a rollback and no step back', async () => {
  await fc.assert(
    fc.asyncProperty(writers, async (all) => {
      const name = crypto.randomUUID();
      const increments = all.flat().filter((what) => what === 'increment').length;
      // The last change is committed.
      const write = async () => {
        await Promise.all(
          all.map(async (steps) => {
            for (const what of steps) await STEPS[what](name);
          }),
        );
        await STEPS.increment(name);
      };
      const watching = [near, near, near, far, far, far].map((node, number) =>
        follow(node, name, increments + 1, `watcher ${number}`),
      );
      const [histories] = await Promise.all([Promise.all(watching), write()]);
      for (const seen of histories) {
        for (const [before, after] of seen.slice(1).map((now, number) => [seen[number] ?? now, now] as const)) {
          expect(after.number).toBeGreaterThan(before.number);
          expect(after.view).toBeGreaterThanOrEqual(before.view);
        }
      }
    }),
    { numRuns: 8 },
  );
  // No notification was lost.
  expect([...near.events, ...far.events]).toEqual([]);
}, 300_000);

test('watch: a watcher that gets no notifications for long still sees the last state', async () => {
  const name = crypto.randomUUID();
  const increments = 40;
  const watching = [near, far].map((node) => follow(node, name, increments, 'watcher'));
  for (let times = 0; times < increments; times += 1) {
    // The connections on which both nodes listen are ended several times.
    if (times % 4 === 0) {
      await writer.queries.execute(
        sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and ${IS_LISTENER}`,
      );
    }
    await STEPS.increment(name);
  }
  const histories = await Promise.all(watching);
  expect(histories.map((seen) => seen.at(-1)?.view)).toEqual([increments, increments]);
  expect(new Set([...near.events, ...far.events].map(({ event }) => event))).toEqual(new Set(['feed_reconnected']));
}, 300_000);
