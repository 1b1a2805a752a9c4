import { expect, test } from 'bun:test';
import { LISTED_MAX, Refusals } from '../../src/platform/limits/refusals.ts';

const BEGIN = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;

test('refusals: are counted for an hour, by limit, the most frequent first', () => {
  let now = BEGIN;
  const refusals = new Refusals({ now: () => new Date(now) });
  expect(refusals.list()).toEqual([]);
  refusals.add('find');
  now += 30 * MINUTE_MS;
  refusals.add('find');
  for (let count = 0; count < 3; count += 1) refusals.add('join');
  expect(refusals.list()).toEqual([
    { limit: 'join', count: 3 },
    { limit: 'find', count: 2 },
  ]);
  now += 30 * MINUTE_MS;
  expect(refusals.list()).toEqual([
    { limit: 'join', count: 3 },
    { limit: 'find', count: 1 },
  ]);
  now += 30 * MINUTE_MS;
  expect(refusals.list()).toEqual([]);
});

test('refusals: a limit that is hit every minute keeps no more than an hour, and few limits are listed', () => {
  let now = BEGIN;
  const refusals = new Refusals({ now: () => new Date(now) });
  for (let minute = 0; minute < 500; minute += 1) {
    now += MINUTE_MS;
    refusals.add('find');
  }
  expect(refusals.list()).toEqual([{ limit: 'find', count: 60 }]);
  for (let limit = 0; limit < 2 * LISTED_MAX; limit += 1) refusals.add(`other ${limit}`);
  expect(refusals.list()).toHaveLength(LISTED_MAX);
});
