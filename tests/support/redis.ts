import { RedisClient } from 'bun';

/** The address of a Redis: from CI, or on this machine. */
export const TEST_REDIS = process.env.MUSTER_TEST_REDIS ?? 'redis://127.0.0.1:6379';

/** One that CI names must be there. */
export const HAS_REDIS = process.env.MUSTER_TEST_REDIS !== undefined || (await isThere(TEST_REDIS));

async function isThere(url: string): Promise<boolean> {
  const client = new RedisClient(url, { autoReconnect: false, connectionTimeout: 1_000 });
  const is_there = await client.connect().then(
    () => true,
    () => false,
  );
  client.close();
  return is_there;
}
