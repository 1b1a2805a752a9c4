import { expect, test } from 'bun:test';
import { after, systemClock } from '../../src/platform/clock.ts';
import { createTestClock } from '../support/clock.ts';

test('after: returns a moment that many milliseconds later or earlier, and leaves the given one unchanged', () => {
  const moment = new Date('2026-03-01T00:00:00.000Z');
  expect(after(moment, 1_500).toISOString()).toBe('2026-03-01T00:00:01.500Z');
  expect(after(moment, -1).toISOString()).toBe('2026-02-28T23:59:59.999Z');
  expect(moment.toISOString()).toBe('2026-03-01T00:00:00.000Z');
});

test('systemClock: returns the current time; so does the test clock until it is advanced', () => {
  const before = Date.now();
  const moved = createTestClock();
  const times = [systemClock.now(), moved.now()].map((moment) => moment.getTime());
  const later = Date.now();
  for (const time of times) expect(time >= before && time <= later).toBe(true);
  moved.advance(3_600_000);
  expect(moved.now().getTime()).toBeGreaterThanOrEqual(before + 3_600_000);
});
