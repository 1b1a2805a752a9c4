import { assert } from '../errors.ts';
import { type MaybePromise, whenKnown } from '../maybe-promise.ts';
import type { ChannelTools, SharedChannel, Snapshot } from './channels.ts';
import { compareRows } from './rows.ts';
import { stateNumberOf } from './version-reads.ts';
import type { RowsState, View } from './views.ts';

/** Maximum number of states to compare the newest one with. A watcher that has seen an older one gets all rows. */
const STATES_MAX = 16;
/** How long the newest state is kept without listeners, because clients poll again right after each answer. */
const IDLE_MS = 10_000;

/**
 * Creates the channel of a list. Its number is the sum of its topics' versions. Each state is exactly that of its number, on
 * every process, so a watcher with the rows of a number can be sent what has changed since.
 */
export function createRowsChannel(view: View & { kind: 'rows' }, { share, toSnapshot }: ChannelTools): SharedChannel {
  let newest: { number: number; state: RowsState } | undefined;
  /** The states that watchers may have, by number. The newest one is the last. */
  const states = new Map<number, RowsState>();
  /** Snapshots of the newest state, by the number of the state that they are compared with. */
  let snapshots = new Map<number | undefined, Snapshot>();
  /** The highest version of each topic in notifications. */
  const announced = new Map<string, number>();
  /** How many notifications had a lower version than the known one. */
  let falls = 0;
  /** How many of them had come when the newest read began. */
  let falls_read = 0;
  let reads_begun = 0;
  let newest_read = 0;
  let forgetting: ReturnType<typeof setTimeout> | undefined;

  function isCurrent(): boolean {
    if (!newest || falls_read < falls) return false;
    for (const [topic, version] of announced) if (version > (newest.state.versions.get(topic) ?? 0)) return false;
    return true;
  }

  /** Reads the list together with all callers of one turn, also those of other channels of the view. */
  async function read(): Promise<void> {
    reads_begun += 1;
    const this_read = reads_begun;
    const falls_before = falls;
    // After a version fell, the announced versions may be those of a database that was restored.
    if (falls_read < falls) announced.clear();
    const state = await share(`rows ${view.name}`, view.read);
    if (this_read < newest_read) return;
    newest_read = this_read;
    falls_read = falls_before;
    const number = stateNumberOf(state.versions);
    if (newest?.number === number) return;
    newest = { number, state };
    snapshots = new Map();
    states.delete(number);
    states.set(number, state);
    for (const old of [...states.keys()].slice(0, -STATES_MAX)) states.delete(old);
  }

  /** Returns the newest state for a watcher that has seen a number: what has changed since then, if that is known. */
  function snapshotSince(number: number | undefined): Snapshot {
    assert(newest, 'the list was read');
    const { head, rows } = newest.state;
    const base = number === undefined ? undefined : states.get(number);
    const compared_with = base && number;
    const known = snapshots.get(compared_with);
    if (known) return known;
    const body = base
      ? { ...head, changes: compareRows(base.rows, rows) }
      : { ...head, rows: rows.map(({ value }) => value) };
    const snapshot = toSnapshot(body, newest.number);
    snapshots.set(compared_with, snapshot);
    return snapshot;
  }

  /** Reads the list if it may have changed. */
  function bringUpToDate(number: number | undefined): MaybePromise<void> {
    // A poll that waits needs its state at the next change.
    clearTimeout(forgetting);
    // A higher number is from a process that has seen more changes, or from before the database was restored.
    if (!isCurrent() || (newest && number !== undefined && number > newest.number)) return read();
  }

  return {
    since(number) {
      return whenKnown(bringUpToDate(number), () => (newest?.number === number ? undefined : snapshotSince(number)));
    },
    async present(number) {
      await bringUpToDate(number);
      return snapshotSince(number);
    },
    onChange(topic, version) {
      const known = Math.max(announced.get(topic) ?? 0, newest?.state.versions.get(topic) ?? 0);
      // A version falls only if its topic was deleted or the database was restored, so the known ones may be wrong.
      if (version < known) falls += 1;
      else announced.set(topic, version);
    },
    async refresh() {
      if (!isCurrent()) await read();
      return false;
    },
    evict() {
      snapshots = new Map();
      states.clear();
      if (newest) states.set(newest.number, newest.state);
      clearTimeout(forgetting);
      forgetting = setTimeout(() => {
        states.clear();
        newest = undefined;
      }, IDLE_MS).unref();
    },
  };
}
