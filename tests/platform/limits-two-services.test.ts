import { expect, test } from 'bun:test';
import { HAS_REDIS, TEST_REDIS } from '../support/redis.ts';
import { openTestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const settings = { REDIS_URL: TEST_REDIS, MUSTER_LIMITS_SCALE: '1' };
test.skipIf(!HAS_REDIS)('limits: two services on one database count together with a shared Redis', async () => {
  await using one = await openTestService(settings);
  await using other = await openTestService(settings, { database_of: one });
  await using alone = await openTestService(settings);
  const remaining = async ({ api }: typeof one) =>
    Number((await api.get('/cloud/bootstrap')).headers.get('ratelimit-remaining'));
  // On a busy machine Redis may be late, and then each service counts on its own for a while.
  await waitFor(
    async () => (await remaining(one)) - (await remaining(other)) === 1,
    'one service to continue the count of the other',
  );
  const least = await remaining(one);
  // A service on another database counts apart, on the same Redis.
  expect(await remaining(alone)).toBeGreaterThan(least);
});
