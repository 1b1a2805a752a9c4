import { expect, test } from 'bun:test';
import { Registry } from '../../src/platform/registry.ts';

test('registry: lists the items that were not removed, in the order in which they came', () => {
  const registry = new Registry<string>();
  registry.add('first');
  const second = registry.add('second');
  registry.add('third');
  expect(registry.remove(second)).toBe(true);
  expect(registry.list()).toEqual(['first', 'third']);
  expect(registry.size).toBe(2);
});

test('registry: an item is removed once, even if another one has its place since', () => {
  const registry = new Registry<number>();
  const slots = Array.from({ length: 1_000 }, (_, number) => registry.add(number));
  // The next item finds more empty places than there may be, so that the gaps are closed.
  for (const slot of slots.slice(0, -3)) expect(registry.remove(slot)).toBe(true);
  registry.add(1_000);
  expect(slots.slice(0, -3).map((slot) => registry.remove(slot))).not.toContain(true);
  expect(registry.list()).toEqual([997, 998, 999, 1_000]);
  for (const slot of slots.slice(-3)) expect(registry.remove(slot)).toBe(true);
  expect(registry.list()).toEqual([1_000]);
});

test('registry: knows the item that came first of those that are left', () => {
  const registry = new Registry<number>();
  expect(registry.first()).toBeUndefined();
  const slots = Array.from({ length: 1_000 }, (_, number) => registry.add(number));
  for (const [number, slot] of slots.entries()) {
    expect(registry.first()).toBe(slot);
    expect(slot.item).toBe(number);
    registry.remove(slot);
    registry.add(1_000 + number);
  }
  expect(registry.first()?.item).toBe(1_000);
});

test('registry: the same item may be there twice', () => {
  const registry = new Registry<string>();
  const slot = registry.add('item');
  registry.add('item');
  registry.remove(slot);
  expect(registry.list()).toEqual(['item']);
});
