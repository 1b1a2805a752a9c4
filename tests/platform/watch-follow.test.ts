import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { touch } from '../../src/platform/watch/versions.ts';
import type { AppendOnlyLog } from '../../src/platform/watch/views.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { answerOfLog, openWatchingNode, type Watched, type WatchingNode } from '../support/watch/watching.ts';

const ENTRIES_MAX = 5;

let opened: AsyncDisposableStack;
let node: WatchingNode;
let short_hold_node: WatchingNode;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  node = opened.use(await openWatchingNode(address));
  short_hold_node = opened.use(await openWatchingNode(address, { hold_ms: 20 }));
});
afterAll(async () => {
  await opened.disposeAsync();
});

/** A log that a test appends to; a page has at most five entries. */
function makeLog() {
  const entries: string[] = [];
  const topic = `log:${crypto.randomUUID()}`;
  const pageFrom = (first: number) => {
    const content = entries.slice(first, first + ENTRIES_MAX);
    return { content, next: first + content.length };
  };
  const entry_log: AppendOnlyLog<string, string[]> = {
    topics: () => [topic],
    last: async () => pageFrom(Math.max(0, entries.length - ENTRIES_MAX)),
    from: async (_, number) => (number <= entries.length ? pageFrom(number) : { content: [], next: number }),
  };
  return {
    entry_log,
    async write(...more: string[]) {
      entries.push(...more);
      await node.database.transact((tx) => touch(tx, [topic]));
    },
  };
}

describe('watch: a log', () => {
  let log: ReturnType<typeof makeLog>;
  beforeEach(() => {
    log = makeLog();
  });

  const follow = (watch_index?: string, on = node): Promise<Watched<string[]>> =>
    answerOfLog(on, log.entry_log, 'key', { watch_index, signal: AbortSignal.timeout(10_000), caller_key: 'ann' });

  test('is answered with its newest entries without an index', async () => {
    await log.write('1', '2', '3', '4', '5', '6', '7');
    const { view, watch } = await follow();
    expect(view).toEqual(['3', '4', '5', '6', '7']);
    expect(watch.index).toMatch(/^[0-9a-f]{8}\.7$/);
  });

  test('is answered with the entries after the index, at once if there are any', async () => {
    const first = await follow();
    expect(first.view).toEqual([]);
    await log.write('1', '2');
    const second = await follow(first.watch.index);
    expect(second.view).toEqual(['1', '2']);
    const waiting = follow(second.watch.index);
    await log.write('3');
    expect((await waiting).view).toEqual(['3']);
  });

  test('is answered without entries and with the same index after the hold time', async () => {
    await log.write('1');
    const first = await follow();
    expect(await follow(first.watch.index, short_hold_node)).toEqual({ view: [], watch: first.watch });
  });

  const FOREIGN = ['', 'x', '00000000.1', '.1'];
  for (const index of FOREIGN) {
    test(`is answered with its newest entries for an index of another database, or an invalid one: "${index}"`, async () => {
      await log.write('1', '2');
      expect((await follow(index)).view).toEqual(['1', '2']);
    });
  }
  for (const tail of ['.-1', '.1.5', '.1e3', '.9999999999999999', '.', '. 1']) {
    test(`is answered with its newest entries for an index with an invalid number: "${tail}"`, async () => {
      await log.write('1', '2');
      const { watch } = await follow();
      expect((await follow(watch.index.replace(/\..*/, tail))).view).toEqual(['1', '2']);
    });
  }

  test('comes complete and in order, however it is written', async () => {
    const writes = fc.array(fc.array(fc.string(), { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(writes, async (all) => {
        log = makeLog();
        const wanted = all.flat();
        let index = (await follow()).watch.index;
        const writing = (async () => {
          for (const entries of all) await log.write(...entries);
        })();
        const read: string[] = [];
        while (read.length < wanted.length) {
          const { view, watch } = await follow(index);
          read.push(...view);
          index = watch.index;
        }
        await writing;
        expect(read).toEqual(wanted);
      }),
      { numRuns: 20 },
    );
  });
});
