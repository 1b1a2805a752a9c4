import { describe, expect, jest, test } from 'bun:test';
import fc from 'fast-check';
import { applyRows } from '../../src/client/rows.ts';
import type { ChannelTools } from '../../src/platform/watch/channels.ts';
import { compareRows, toRow } from '../../src/platform/watch/rows.ts';
import { createRowsChannel } from '../../src/platform/watch/rows-channel.ts';

interface Item {
  id: string;
  value: number;
}

const items = fc.uniqueArray(
  fc.record({ id: fc.constantFrom(...'abcdefghij'), value: fc.integer({ min: 0, max: 2 }) }),
  {
    selector: ({ id }) => id,
  },
);
const rowsOf = (list: Item[]) => list.map((item) => toRow(item.id, item));
const bodyOf = (changes: ReturnType<typeof compareRows>) => ({
  row_id: 'id',
  changes: { ...changes, placed: changes.placed as { at: number; row: Item }[] },
  watch: { index: '1' },
});

describe('rows: the changes from one list to another', () => {
  test('turn the one into the other', () => {
    fc.assert(
      fc.property(items, items, (before, after) => {
        const changes = compareRows(rowsOf(before), rowsOf(after));
        expect(applyRows(before, bodyOf(changes))).toEqual(after);
      }),
      { numRuns: 1_000 },
    );
  });

  test('are few: nothing for equal lists, one row for one change, and one row for one move', () => {
    const list = Array.from({ length: 50 }, (_, id) => ({ id: String(id), value: 0 }));
    expect(compareRows(rowsOf(list), rowsOf(list))).toEqual({ removed: [], placed: [] });
    const changed = list.with(7, { id: '7', value: 1 });
    expect(compareRows(rowsOf(list), rowsOf(changed)).placed).toEqual([{ at: 7, row: { id: '7', value: 1 } }]);
    const [first, ...others] = list;
    const moved = compareRows(rowsOf(list), rowsOf([...others, first as Item]));
    expect(moved).toEqual({ removed: [], placed: [{ at: 49, row: first as Item }] });
    expect(compareRows(rowsOf(list), rowsOf(others))).toEqual({ removed: ['0'], placed: [] });
  });

  test('keep the rows that did not change as they are', () => {
    const [one, two] = [
      { id: 'a', value: 0 },
      { id: 'b', value: 0 },
    ];
    const changes = compareRows(rowsOf([one, two]), rowsOf([one, { id: 'b', value: 1 }]));
    expect(applyRows([one, two], bodyOf(changes))[0]).toBe(one);
  });
});

/** A channel of a list that the test changes, as a transaction would. */
function openChannel() {
  let list: Item[] = [];
  let version = 0;
  let reads = 0;
  let held = Promise.resolve();
  const tools: ChannelTools = {
    readVersions: () => Promise.reject(new Error('versions come with the rows')),
    share: (_name, read) => read(),
    toSnapshot: (body, number) => ({ number, from: undefined, text: JSON.stringify(body) }),
  };
  const view = {
    kind: 'rows' as const,
    name: 'list',
    topics: ['list'],
    async read() {
      reads += 1;
      const state = { versions: new Map([['list', version]]), head: { total: list.length }, rows: rowsOf(list) };
      await held;
      return state;
    },
  };
  const channel = createRowsChannel(view, tools);
  return {
    channel,
    get reads() {
      return reads;
    },
    /** Commits another list, and notifies unless the notification is lost. */
    set(next: Item[], { is_lost = false, by = 1 } = {}): void {
      list = next;
      version += by;
      if (!is_lost) channel.onChange('list', version);
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = Promise.resolve();
        resolve();
      };
    },
    async since(number: number) {
      const snapshot = await channel.since(number);
      return snapshot && { number: snapshot.number, body: JSON.parse(snapshot.text) };
    },
  };
}

const [a, b] = [
  { id: 'a', value: 0 },
  { id: 'b', value: 0 },
];

describe('rows: a channel', () => {
  test('sends all rows to a new watcher, and then the changes', async () => {
    const opened = openChannel();
    opened.set([a]);
    const { number, text } = await opened.channel.present(undefined);
    expect(JSON.parse(text)).toEqual({ total: 1, rows: [a] });
    // What is known comes without a promise.
    expect(opened.channel.since(number)).toBeUndefined();
    opened.set([a, b]);
    expect(opened.channel.since(number)).toBeInstanceOf(Promise);
    const changes = { removed: [], placed: [{ at: 1, row: b }] };
    expect(await opened.since(number)).toEqual({ number: 2, body: { total: 2, changes } });
    expect(opened.channel.since(number)).toMatchObject({ number: 2 });
    // A poll that is answered after the hold time gets no changes.
    expect(JSON.parse((await opened.channel.present(2)).text)).toEqual({
      total: 2,
      changes: { removed: [], placed: [] },
    });
  });

  test('sends all rows to a watcher of a state that it does not know: too old, of the future, or before an idle time', async () => {
    const opened = openChannel();
    for (let times = 0; times < 20; times += 1) {
      opened.set([{ id: 'a', value: times }]);
      await opened.channel.present(undefined);
    }
    expect((await opened.since(19))?.body.changes).toBeDefined();
    expect((await opened.since(3))?.body.rows).toEqual([{ id: 'a', value: 19 }]);
    expect((await opened.since(1_000))?.body.rows).toEqual([{ id: 'a', value: 19 }]);
    opened.channel.evict();
    opened.set([b]);
    expect((await opened.since(20))?.body.changes).toEqual({ removed: ['a'], placed: [{ at: 0, row: b }] });
    opened.channel.evict();
    expect((await opened.since(20))?.body.rows).toEqual([b]);
  });

  test('keeps the state of a poll that waits, however long it waits', async () => {
    jest.useFakeTimers();
    try {
      const opened = openChannel();
      opened.set([a]);
      const { number } = await opened.channel.present(undefined);
      opened.channel.evict();
      // The client polls again.
      expect(await opened.since(number)).toBeUndefined();
      jest.advanceTimersByTime(60_000);
      opened.set([a, b]);
      const reading = opened.since(number);
      jest.advanceTimersByTime(1);
      expect((await reading)?.body).toEqual({ total: 2, changes: { removed: [], placed: [{ at: 1, row: b }] } });
    } finally {
      jest.useRealTimers();
    }
  });

  test('reads once for each notification, and not for one that it has read already', async () => {
    const opened = openChannel();
    opened.set([a]);
    await opened.channel.present(undefined);
    expect(opened.reads).toBe(1);
    await opened.channel.present(undefined);
    opened.channel.onChange('list', 1);
    await opened.channel.refresh();
    expect(opened.reads).toBe(1);
    opened.set([a, b], { is_lost: true });
    await opened.channel.refresh();
    expect(opened.reads).toBe(1);
    // The feed notices later that a notification was lost.
    opened.channel.onChange('list', 2);
    await opened.channel.refresh();
    await opened.channel.refresh();
    expect([opened.reads, (await opened.since(1))?.number]).toEqual([2, 2]);
  });

  test('misses no change that comes during a read', async () => {
    const opened = openChannel();
    opened.set([a]);
    const release = opened.hold();
    const reading = opened.channel.present(undefined);
    opened.set([a, b]);
    release();
    expect((await reading).number).toBe(1);
    expect((await opened.since(1))?.number).toBe(2);
  });

  test('follows a database that was restored to lower versions', async () => {
    const opened = openChannel();
    opened.set([a], { by: 10 });
    await opened.channel.present(undefined);
    opened.set([b], { by: -5 });
    const changes = { removed: ['a'], placed: [{ at: 0, row: b }] };
    expect((await opened.since(10))?.body).toEqual({ total: 1, changes });
    expect((await opened.channel.present(undefined)).number).toBe(5);
  });
});
