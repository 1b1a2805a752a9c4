import { describe, expect, test } from 'bun:test';
import { Quota, shareSlots } from '../../../src/features/gateway/quota.ts';

const MANY = { open_max: 1_000, open_of_address_max: 1_000, opened_per_second_max: 1_000 };

describe('quota: slots that servers share', () => {
  test('one server gets half of them at most, so clients of others still find some', () => {
    const slots = { taken: 0, max: 10 };
    const [one, other] = [new Quota(shareSlots(MANY, slots), slots), new Quota(shareSlots(MANY, slots), slots)];
    const takeAll = (quota: Quota) => Array.from({ length: 20 }, (_, index) => quota.take(`192.0.2.${index}`));
    const of_one = takeAll(one).filter(Boolean);
    expect(of_one).toHaveLength(5);
    expect(takeAll(other).filter(Boolean)).toHaveLength(5);
    of_one[0]?.();
    expect(one.take('192.0.2.99')).toBeFunction();
  });

  test('a lower limit of the server stays', () => {
    expect(shareSlots({ ...MANY, open_max: 3 }, { taken: 0, max: 10 }).open_max).toBe(3);
  });
});
