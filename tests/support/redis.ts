import { RedisClient } from 'bun';

const LOCAL = 'redis://127.0.0.1:6379';

/** The address of a Redis: from CI, or on this machine; undefined if there is none. */
export const TEST_REDIS = process.env.MUSTER_TEST_REDIS ?? ((await isThere(LOCAL)) ? LOCAL : undefined);

async function isThere(url: string): Promise<boolean> {
  const client = new RedisClient(url, { autoReconnect: false, connectionTimeout: 1_000 });
  const is_there = await client.connect().then(
    () => true,
    () => false,
  );
  client.close();
  return is_there;
}
