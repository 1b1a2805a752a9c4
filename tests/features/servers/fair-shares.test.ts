import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  shareRoom,
  shareStarts,
  takeInTurns,
  type WaitingNamespace,
} from '../../../src/features/servers/placement/fair-shares.ts';
import { usedShareOf } from '../../../src/features/servers/placement/machine-room.ts';
import { pauseBeforeTaking } from '../../../src/features/servers/placement/other-machines.ts';
import type { Room } from '../../../src/features/servers/tables.ts';

const NO_LIMITS: Room = {
  ports: Number.POSITIVE_INFINITY,
  cpu: Number.POSITIVE_INFINITY,
  memory: Number.POSITIVE_INFINITY,
};
const machine = { servers_max: 10, servers_per_group_max: 100, taken_at_once_max: 32, room: NO_LIMITS };
const NEEDS: Room = { ports: 1, cpu: 1_000, memory: 512 };
/** Running servers of a namespace that is the only one of its group. */
const run = (namespace_id: string, count: number) =>
  Array.from({ length: count }, () => ({ namespace_id, group_id: `group of ${namespace_id}` }));
/** A namespace with waiting servers, the only one of its group. */
const wait = (namespace_id: string, waiting: number, since = 0): WaitingNamespace => ({
  namespace_id,
  group_id: `group of ${namespace_id}`,
  waiting,
  since: new Date(since),
  needs: NEEDS,
});

test('turns: servers are chosen in turns of their namespaces, the first of each in order', () => {
  const many = ['a', 'a', 'a', 'a', 'b', 'c', 'c'].map((namespace_id, number) => ({ namespace_id, number }));
  const numbersOf = (count_max: number) => takeInTurns(many, count_max).map(({ number }) => number);
  expect(numbersOf(5)).toEqual([0, 4, 5, 1, 6]);
  expect(numbersOf(100)).toEqual([0, 4, 5, 1, 6, 2, 3]);
  expect(numbersOf(0)).toEqual([]);
  expect(takeInTurns([], 5)).toEqual([]);
});

describe('turns: the room of a machine goes', () => {
  const CASES = [
    ['to no namespace if none waits', [], run('a', 3), {}, {}],
    ['to all that wait if there is enough', [wait('a', 3), wait('b', 2)], [], { a: 3, b: 2 }, {}],
    ['in equal parts, whatever the order of arrival', [wait('a', 30), wait('b', 30, 5)], [], { a: 5, b: 5 }, {}],
    [
      'to those with the fewest servers',
      [wait('a', 30), wait('b', 30, 5)],
      run('a', 6),
      { b: 4 },
      { a: 'machine_full' },
    ],
    [
      'to a new namespace before one with many servers',
      [wait('a', 30), wait('b', 1, 5)],
      run('a', 9),
      { b: 1 },
      { a: 'machine_full' },
    ],
    [
      'to no namespace if no room is left',
      [wait('a', 1), wait('b', 1)],
      run('a', 10),
      {},
      { a: 'machine_full', b: 'machine_full' },
    ],
  ] as const;
  test.each(CASES)('%s', (_, waiting, on_machine, to_take, wait_reasons) => {
    const turns = shareRoom([...waiting], { ...machine, on_machine: [...on_machine] });
    expect(Object.fromEntries(turns.to_take)).toEqual({ ...to_take });
    expect(Object.fromEntries(turns.wait_reasons)).toEqual({ ...wait_reasons });
  });

  test('to a group up to its quota, whichever of its namespaces has the servers', () => {
    const waiting = ['a', 'b'].map((namespace_id) => ({ ...wait(namespace_id, 30), group_id: 'one' }));
    const on_machine = [{ namespace_id: 'a', group_id: 'one' }];
    const turns = shareRoom([...waiting, wait('c', 1, 9)], { ...machine, servers_per_group_max: 4, on_machine });
    expect(Object.fromEntries(turns.to_take)).toEqual({ a: 1, b: 2, c: 1 });
    const full = { ...machine, servers_per_group_max: 1, on_machine };
    expect(Object.fromEntries(shareRoom(waiting, full).wait_reasons)).toEqual({ a: 'group_quota', b: 'group_quota' });
  });

  const LACKS: [string, Partial<Room>, object, object][] = [
    ['of ports', { ports: 3 }, { a: 2, b: 1 }, {}],
    ['of processors', { cpu: 1_999 }, { a: 1 }, { b: 'no_resources' }],
    ['of memory', { memory: 511 }, {}, { a: 'no_resources', b: 'no_resources' }],
    ['of ports, and none is left', { ports: 0 }, {}, { a: 'no_ports', b: 'no_ports' }],
  ];
  test.each(LACKS)('to servers while there is enough %s', (_, room, to_take, wait_reasons) => {
    const turns = shareRoom([wait('a', 5), wait('b', 5, 5)], {
      ...machine,
      room: { ...NO_LIMITS, ...room },
      on_machine: [],
    });
    expect(Object.fromEntries(turns.to_take)).toEqual(to_take as never);
    expect(Object.fromEntries(turns.wait_reasons)).toEqual(wait_reasons as never);
  });

  test('to a namespace with smaller servers beside one whose next server needs more than is left', () => {
    const large = { ...wait('a', 5), needs: { ...NEEDS, ports: 4 } };
    const turns = shareRoom([large, wait('b', 5, 5)], { ...machine, room: { ...NO_LIMITS, ports: 3 }, on_machine: [] });
    expect(Object.fromEntries(turns.to_take)).toEqual({ b: 3 });
    expect(Object.fromEntries(turns.wait_reasons)).toEqual({ a: 'no_ports' });
  });

  test('never beyond the room, the quota and the waiting servers; and usable room is used', () => {
    const namespace = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const numbers = fc.record({
      servers_max: fc.nat(12),
      servers_per_group_max: fc.nat(6),
      taken_at_once_max: fc.nat(9),
    });
    const queue = fc.uniqueArray(fc.tuple(namespace, fc.integer({ min: 1, max: 9 }), fc.nat(9)), {
      selector: ([name]) => name,
    });
    fc.assert(
      fc.property(numbers, queue, fc.array(namespace, { maxLength: 12 }), (limits, queued, running_names) => {
        const groupOf = (name: string) => (name < 'c' ? 'first' : 'second');
        const waiting = queued.map(([name, count, since]) => ({
          ...wait(name, count, since),
          group_id: groupOf(name),
        }));
        const on_machine = running_names.map((name) => ({ namespace_id: name, group_id: groupOf(name) }));
        const { to_take } = shareRoom(waiting, { ...limits, on_machine, room: NO_LIMITS });
        const countOf = (group: string) =>
          [...to_take].reduce((sum, [name, count]) => sum + (groupOf(name) === group ? count : 0), 0);
        const runningOf = (group: string) => on_machine.filter(({ group_id }) => group_id === group).length;
        const sum = [...to_take.values()].reduce((all, count) => all + count, 0);
        const room = Math.max(Math.min(limits.servers_max - on_machine.length, limits.taken_at_once_max), 0);
        expect(sum).toBeLessThanOrEqual(room);
        for (const { namespace_id, group_id, waiting: count } of waiting) {
          const own = to_take.get(namespace_id) ?? 0;
          expect(own).toBeLessThanOrEqual(count);
          const has_quota = runningOf(group_id) + countOf(group_id) < limits.servers_per_group_max;
          if (own > 0)
            expect(runningOf(group_id) + countOf(group_id)).toBeLessThanOrEqual(limits.servers_per_group_max);
          if (own < count && has_quota) expect(sum).toBe(room);
        }
      }),
    );
  });
});

describe('a machine beside others takes a server', () => {
  const ALL: Room = { ports: 100, cpu: 4_000, memory: 8_192 };

  test('sooner, the less of its scarcest room is used', () => {
    expect(usedShareOf(ALL, ALL)).toBe(0);
    expect(usedShareOf(ALL, { ports: 90, cpu: 1_000, memory: 4_096 })).toBe(0.75);
    expect(usedShareOf(ALL, { ports: 0, cpu: 1_000, memory: 4_096 })).toBe(1);
    expect(usedShareOf(NO_LIMITS, NO_LIMITS)).toBe(0);
    const times = [0, 0.1, 0.5, 1, 7].map((used) => pauseBeforeTaking({ used, is_unpacked: true }));
    expect(times).toEqual([0, 10, 50, 100, 100]);
  });

  test('sooner with the build unpacked, unless it is much fuller than one without', () => {
    const with_build = (used: number) => pauseBeforeTaking({ used, is_unpacked: true });
    const without = pauseBeforeTaking({ used: 0, is_unpacked: false });
    expect(with_build(0.15)).toBeLessThan(without);
    expect(with_build(0.25)).toBeGreaterThan(without);
  });
});

describe('shareStarts: of eight places for starts', () => {
  const startsOf = (namespace_id: string, count: number) => Array.from({ length: count }, () => ({ namespace_id }));
  const namesOf = (chosen: { namespace_id: string }[]) => chosen.map(({ namespace_id }) => namespace_id).join('');
  const share = (waiting: { namespace_id: string }[], under_way = startsOf('', 0)) =>
    namesOf(shareStarts(waiting, { under_way, starts_max: 8 }));

  test('a namespace alone gets half', () => {
    expect(share(startsOf('a', 9))).toBe('aaaa');
    expect(share(startsOf('a', 9), startsOf('a', 4))).toBe('');
  });

  test('several namespaces get them in turns, and leave some', () => {
    expect(share([...startsOf('a', 9), ...startsOf('b', 9)])).toBe('ababab');
    expect(share([...startsOf('a', 9), ...startsOf('b', 1), ...startsOf('c', 1)])).toBe('abcaa');
  });

  test('a namespace without a start gets one beside the slow starts of others', () => {
    expect(share([...startsOf('a', 9), ...startsOf('b', 2)], startsOf('a', 4))).toBe('bb');
    expect(share(startsOf('c', 1), [...startsOf('a', 4), ...startsOf('b', 2)])).toBe('c');
    expect(share(startsOf('d', 1), [...startsOf('a', 4), ...startsOf('b', 2), ...startsOf('c', 1)])).toBe('d');
  });
});
