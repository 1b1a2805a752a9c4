import type { MaybePromise } from '../maybe-promise.ts';
import type { ChannelTools, SharedChannel, Snapshot } from './channels.ts';
import type { View } from './views.ts';

/**
 * Creates the channel of an append-only log. Its number is that of the next entry. Each answer continues where the
 * previous one ended, so no entry is missing or repeated.
 */
export function createLogChannel(view: View & { kind: 'log' }, { share, toSnapshot }: ChannelTools): SharedChannel {
  /** The latest known end of the log, where watchers that are up to date wait. */
  let end: number | undefined;
  /** The last read after the end, which may still be under way. All watchers at the end share it until a change. */
  let reading_on: Promise<Snapshot> | undefined;
  /** The latest entries that were read. */
  let newest: Snapshot | undefined;

  const readLast = (): Promise<Snapshot> =>
    share(`end ${view.name}`, async () => {
      const { content, next } = await view.last();
      return toSnapshot(content, next);
    });

  /** Returns what a watcher gets that has seen nothing. */
  const readFirst = (): Promise<Snapshot> =>
    share(`first ${view.name}`, async () => {
      const { content, next } = (await view.first?.()) ?? (await view.last());
      return toSnapshot(content, next);
    });

  const readFrom = (number: number): Promise<Snapshot> =>
    share(`${number} ${view.name}`, async () => {
      const { content, next } = await view.from(number);
      return toSnapshot(content, next, number);
    });

  async function readOn(number: number): Promise<Snapshot> {
    const snapshot = await readFrom(number);
    if (end !== undefined && snapshot.number > end) {
      newest = snapshot;
      moveEnd(snapshot.number);
    }
    return snapshot;
  }

  function moveEnd(number: number): void {
    end = number;
    reading_on = undefined;
  }

  function readOnFromEnd(number: number): Promise<Snapshot> {
    if (reading_on) return reading_on;
    const this_read = readOn(number);
    reading_on = this_read;
    this_read.catch(() => {
      if (reading_on === this_read) reading_on = undefined;
    });
    return this_read;
  }

  async function readSince(number: number): Promise<Snapshot | undefined> {
    if (end === undefined || number > end) {
      const last = view.end ? { number: await view.end() } : await readLast();
      // Other reads may have moved the end further meanwhile.
      if (end === undefined || last.number > end) moveEnd(last.number);
      // The number is invented, or from before the database was restored: the watcher begins anew. Without `view.first` that
      // means the latest entries, which were just read.
      if (end !== undefined && number > end) return 'text' in last && !view.first ? last : await readFirst();
    }
    const snapshot = await (number === end ? readOnFromEnd(number) : readOn(number));
    return snapshot.number === number ? undefined : snapshot;
  }

  const since = (number: number): MaybePromise<Snapshot | undefined> =>
    newest?.from === number ? newest : readSince(number);

  return {
    since,
    present: async (number) => (number === undefined ? await readFirst() : await readFrom(number)),
    onChange() {
      reading_on = undefined;
    },
    refresh: async () => end !== undefined && (await since(end)) !== undefined,
    evict() {
      newest = undefined;
    },
  };
}
