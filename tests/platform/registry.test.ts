import { expect, test } from 'bun:test';
import { Registry } from '../../src/platform/registry.ts';

test('registry: lists the items that were not removed, in the order in which they came', () => {
  const registry = new Registry<string>();
  registry.add('first');
  const remove = registry.add('second');
  registry.add('third');
  expect(remove()).toBe(true);
  expect(registry.list()).toEqual(['first', 'third']);
  expect(registry.size).toBe(2);
});

test('registry: an item is removed once, even if another one has its place since', () => {
  const registry = new Registry<number>();
  const removers = Array.from({ length: 1_000 }, (_, number) => registry.add(number));
  // The next item finds more empty places than there may be, so that the gaps are closed.
  for (const remove of removers.slice(0, -3)) expect(remove()).toBe(true);
  registry.add(1_000);
  expect(removers.slice(0, -3).map((remove) => remove())).not.toContain(true);
  expect(registry.list()).toEqual([997, 998, 999, 1_000]);
  for (const remove of removers.slice(-3)) expect(remove()).toBe(true);
  expect(registry.list()).toEqual([1_000]);
});

test('registry: knows the item that came first of those that are left', () => {
  const registry = new Registry<number>();
  expect(registry.first()).toBeUndefined();
  const removers = Array.from({ length: 1_000 }, (_, number) => registry.add(number));
  for (const [number, remove] of removers.entries()) {
    expect(registry.first()).toBe(number);
    remove();
    registry.add(1_000 + number);
  }
  expect(registry.first()).toBe(1_000);
});

test('registry: the same item may be there twice', () => {
  const registry = new Registry<string>();
  const remove = registry.add('item');
  registry.add('item');
  remove();
  expect(registry.list()).toEqual(['item']);
});
