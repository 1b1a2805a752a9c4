import { expect, test } from 'bun:test';
import { TEST_REDIS } from '../support/redis.ts';
import { openTestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

if (TEST_REDIS !== undefined) {
  const settings = { REDIS_URL: TEST_REDIS, MUSTER_LIMITS_SCALE: '1' };
  test('two services on one database count together, over a Redis that both know', async () => {
    await using one = await openTestService(settings);
    await using other = await openTestService(settings, { beside: one });
    await using alone = await openTestService(settings);
    const remaining = async ({ api }: typeof one) =>
      Number((await api.get('/cloud/bootstrap')).headers.get('ratelimit-remaining'));
    // On a busy machine Redis may be late, and each counts for a while by itself.
    await waitFor(async () => (await remaining(one)) - (await remaining(other)) === 1, 'one to count after the other');
    const least = await remaining(one);
    // Another database is another Muster, on the same Redis.
    expect(await remaining(alone)).toBeGreaterThan(least);
  });
}
