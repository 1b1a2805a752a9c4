import { expect, test } from 'bun:test';
import { choosePause, TIMING } from '../../src/client/timing.ts';

const LONGEST_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];

test.each(LONGEST_MS.map((longest, failures) => [failures, longest]))(
  'choosePause: after %d more failures it is random, up to %d ms',
  (failures, longest) => {
    const pauses = Array.from({ length: 1_000 }, () => choosePause(failures, TIMING)).sort((one, other) => one - other);
    expect(pauses[0]).toBeLessThan(longest * 0.1);
    expect(pauses.at(-1)).toBeGreaterThan(longest * 0.9);
    expect(pauses.at(-1)).toBeLessThanOrEqual(longest);
    expect(new Set(pauses).size).toBeGreaterThan(900);
  },
);
