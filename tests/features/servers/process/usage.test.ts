import { expect, test } from 'bun:test';
import type { TreeProcess } from '../../../../src/features/servers/runtimes/linux/process-trees.ts';
import { createUsage } from '../../../../src/features/servers/runtimes/process/process-usage.ts';

const one = (pid: number, parent: number, own_ms: number, waited_ms = 0, start_ticks = pid): TreeProcess => ({
  pid,
  parent,
  session: 1,
  start_ticks,
  program: undefined,
  own_ms,
  waited_ms,
  memory_bytes: 0,
  is_dead: false,
});

/** Readings of one server, and the total usage after each. */
const CASES: [string, [TreeProcess[], number][]][] = [
  ['a running process counts with the children that it has waited for', [[[one(10, 1, 50, 30), one(11, 10, 20)], 100]]],
  [
    'a child that was seen does not count again once its parent has waited for it',
    [
      [[one(10, 1, 50), one(11, 10, 200)], 250],
      [[one(10, 1, 50, 240)], 290],
    ],
  ],
  [
    'a child that ended without a wait stays counted',
    [
      [[one(10, 1, 50), one(11, 10, 200)], 250],
      [[one(10, 1, 60)], 260],
    ],
  ],
  [
    'a daemon that ended is not subtracted from what others have waited for',
    [
      [[one(10, 1, 0), one(11, 1, 200)], 200],
      [[one(10, 1, 0, 70)], 270],
    ],
  ],
  [
    'a grandchild belongs to its parent, and then to the next ancestor',
    [
      [[one(10, 1, 0), one(11, 10, 10), one(12, 11, 100)], 110],
      [[one(10, 1, 0, 120)], 120],
    ],
  ],
  [
    'a later process with the same pid starts at zero',
    [
      [[one(10, 1, 0), one(11, 10, 100)], 100],
      [[one(10, 1, 0), one(11, 10, 30, 0, 99)], 130],
    ],
  ],
];

test.each(CASES)('usage: %s', (_, readings) => {
  const usage = createUsage();
  for (const [tree, used_ms] of readings) expect(usage.add(new Map([['server', tree]])).get('server')).toBe(used_ms);
});

test('usage: a server without processes has none, and its readings are dropped', () => {
  const usage = createUsage();
  usage.add(new Map([['server', [one(10, 1, 100)]]]));
  expect(usage.add(new Map([['server', []]]))).toEqual(new Map());
  expect(usage.add(new Map([['server', [one(10, 1, 40)]]]))).toEqual(new Map([['server', 40]]));
});
