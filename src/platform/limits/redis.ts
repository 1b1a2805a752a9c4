import { Redis } from '@upstash/redis';
import { RedisClient } from 'bun';

/** From afar, with TLS, it takes several times as long as an answer. */
const CONNECT_WITHIN_MS = 3_000;
/** What the limits' scripts begin with; Upstash knows that flag, Redis and Valkey refuse it. */
const FIRST_LINE = /^\s*#!lua[^\n]*\n/;
const SCRIPTS_MAX = 100;

/** A Redis as the limits' library knows it. */
export interface RedisStore {
  redis: Redis;
  /**
   * Leaves a connection on which nothing comes any more. The next command opens another. One that is being opened has a
   * time of its own, and may be there for the command after it.
   */
  renew(): void;
  close(): void;
}

/**
 * Redis or Valkey at `redis://` or `rediss://`, by Bun's client. A connection is opened when it is needed; while there is
 * none, commands fail at once and none is kept for later: what was to be counted then is counted elsewhere.
 */
export function openRedis(url: string): RedisStore {
  let connection: Promise<RedisClient> | undefined;
  let opened: RedisClient | undefined;
  let is_opening = false;
  /** By the hash of a script as the library has it, that of the same without its first line. */
  const hashes = new Map<string, string>();

  async function connect(): Promise<RedisClient> {
    const client = new RedisClient(url, {
      autoReconnect: false,
      enableOfflineQueue: false,
      connectionTimeout: CONNECT_WITHIN_MS,
    });
    opened = client;
    client.onclose = () => {
      if (opened === client) leave();
    };
    is_opening = true;
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (opened === client) leave();
      throw error;
    } finally {
      if (opened === client || opened === undefined) is_opening = false;
    }
  }

  function leave(): void {
    const client = opened;
    opened = undefined;
    connection = undefined;
    client?.close();
  }

  function plainOf(script: string): string {
    const plain = script.replace(FIRST_LINE, '');
    // They are the library's, and a handful.
    if (hashes.size < SCRIPTS_MAX) hashes.set(hashOf(script), hashOf(plain));
    return plain;
  }

  const redis = new Redis({
    async request({ body }) {
      const [command = '', first = '', ...others] = (body as unknown[]).map(String);
      const name = command.toUpperCase();
      const argument = name === 'EVAL' ? plainOf(first) : name === 'EVALSHA' ? (hashes.get(first) ?? first) : first;
      connection ??= connect();
      return { result: await (await connection).send(name, [argument, ...others]) };
    },
  });
  const renew = () => {
    if (!is_opening) leave();
  };
  return { redis, renew, close: leave };
}

/** By which Redis names a script. */
function hashOf(script: string): string {
  return new Bun.CryptoHasher('sha1').update(script).digest('hex');
}
