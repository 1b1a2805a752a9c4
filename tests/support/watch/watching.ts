import { type Database, type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { type Feed, openFeed } from '../../../src/platform/watch/feed.ts';
import {
  type AppendOnlyLog,
  type View,
  type Watchable,
  watchLog,
  watchState,
} from '../../../src/platform/watch/views.ts';
import { openWatch, type Watch } from '../../../src/platform/watch/watch.ts';
import { createNumbers, increaseNumber, readNumber } from './numbers.ts';

/** The parts of a process for watching. */
export interface WatchingNode extends AsyncDisposable {
  database: Database;
  feed: Feed;
  watch: Watch;
  events: ServiceEvent[];
}

const LIMITS = { watchers_max: 20_000, watchers_per_caller_max: 64 };

/**
 * Opens the watch of one process; several on one database are like several processes. By default it holds polls and
 * rechecks versions so rarely that a lost notification is noticed.
 */
export async function openWatchingNode(
  address: DatabaseAddress,
  { hold_ms = 60_000, recheck_every_ms = 60_000 } = {},
): Promise<WatchingNode> {
  await using opened = new AsyncDisposableStack();
  const events: ServiceEvent[] = [];
  const database = opened.use(openDatabase(address, 4));
  await createNumbers(database.queries);
  const feed = opened.use(await openFeed(database, { emit: (event) => events.push(event) }, recheck_every_ms));
  const watch = await openWatch(database.queries, feed, { watch_hold_ms: hold_ms, ...LIMITS });
  const everything = opened.move();
  return { database, feed, watch, events, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

/** Returns a view of numbers by their names; `reads` counts how often it was read. */
export function watchNumbers({
  database,
}: Pick<WatchingNode, 'database'>): Watchable<string, number> & { reads: number } {
  return {
    reads: 0,
    topics: (name) => [`number:${name}`],
    async read(name) {
      this.reads += 1;
      return await readNumber(database.queries, name);
    },
  };
}

/** A decoded answer with its index. */
export interface Watched<View> {
  view: View;
  watch: { index: string };
}

interface PollOptions {
  watch_index: string | undefined;
  signal: AbortSignal;
  caller_key: string;
}

/** Returns the decoded answer to a watcher of a state. */
export async function answerOfState<Key, View>(
  { watch }: Pick<WatchingNode, 'watch'>,
  watchable: Watchable<Key, View>,
  key: Key,
  poll: PollOptions,
): Promise<Watched<View>> {
  return await ask(
    watch,
    watchState(watchable, key, (view) => ({ view })),
    poll,
  );
}

/** Returns the decoded answer to a watcher of a log. */
export async function answerOfLog<Key, View>(
  { watch }: Pick<WatchingNode, 'watch'>,
  log: AppendOnlyLog<Key, View>,
  key: Key,
  poll: PollOptions,
): Promise<Watched<View>> {
  return await ask(
    watch,
    watchLog(log, key, (view) => ({ view })),
    poll,
  );
}

async function ask(watch: Watch, view: View, { watch_index, ...waiting }: PollOptions) {
  return JSON.parse(await watch.answer(view, { number: watch.readIndex(watch_index), ...waiting }));
}

/** Increments the number under a name, and bumps its version. */
export async function incrementNumber({ database }: Pick<WatchingNode, 'database'>, name: string): Promise<void> {
  await database.transact((tx) => increaseNumber(tx, name));
}
