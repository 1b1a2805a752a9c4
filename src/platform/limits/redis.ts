import { Redis } from '@upstash/redis';
import { RedisClient } from 'bun';

/** Connecting with TLS takes several times as long as an answer. */
const CONNECT_WITHIN_MS = 3_000;
/** The first line of the library's scripts. It has a flag that only Upstash accepts. */
const FIRST_LINE = /^\s*#!lua[^\n]*\n/;
const SCRIPTS_MAX = 100;

/** A connection to Redis with the interface that the library for limits expects. */
export interface RedisStore {
  redis: Redis;
  /**
   * Drops a connection that no longer answers; the next command opens another. A connection that is being opened is kept,
   * because it has a timeout of its own.
   */
  renew(): void;
  close(): void;
}

/**
 * Opens Redis or Valkey at `redis://` or `rediss://` with Bun's client. Connects when needed. Without a connection,
 * commands fail at once instead of waiting, and this process counts the request.
 */
export function openRedis(url: string): RedisStore {
  let connection: Promise<RedisClient> | undefined;
  let opened: RedisClient | undefined;
  let is_opening = false;
  /** The hash of a script without its first line, by the hash of the library's script. */
  const hashes = new Map<string, string>();

  async function connect(): Promise<RedisClient> {
    const client = new RedisClient(url, {
      autoReconnect: false,
      enableOfflineQueue: false,
      connectionTimeout: CONNECT_WITHIN_MS,
    });
    opened = client;
    client.onclose = () => {
      if (opened === client) dropConnection();
    };
    is_opening = true;
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (opened === client) dropConnection();
      throw error;
    } finally {
      if (opened === client || opened === undefined) is_opening = false;
    }
  }

  function dropConnection(): void {
    const client = opened;
    opened = undefined;
    connection = undefined;
    client?.close();
  }

  function withoutFirstLine(script: string): string {
    const plain = script.replace(FIRST_LINE, '');
    // The library has a handful of scripts. The maximum guards against a version of it with many.
    if (hashes.size < SCRIPTS_MAX) hashes.set(hashOf(script), hashOf(plain));
    return plain;
  }

  const redis = new Redis({
    async request({ body }) {
      const [command = '', first = '', ...others] = (body as unknown[]).map(String);
      const name = command.toUpperCase();
      const argument =
        name === 'EVAL' ? withoutFirstLine(first) : name === 'EVALSHA' ? (hashes.get(first) ?? first) : first;
      connection ??= connect();
      return { result: await (await connection).send(name, [argument, ...others]) };
    },
  });
  const renew = () => {
    if (!is_opening) dropConnection();
  };
  return { redis, renew, close: dropConnection };
}

/** Returns the hash by which Redis names a script. */
function hashOf(script: string): string {
  return new Bun.CryptoHasher('sha1').update(script).digest('hex');
}
