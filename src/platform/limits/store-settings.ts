import { type Static, Type } from '@sinclair/typebox';
import { StartError } from '../errors.ts';

/** The store in which several processes count requests together. */
export type StoreSettings = { kind: 'redis'; url: string } | { kind: 'upstash'; url: string; token: string };

/** The service's settings for the store. */
export const STORE_SHAPES = {
  REDIS_URL: Type.Optional(
    Type.String({
      pattern: '^rediss?://',
      expected: 'an address that begins with redis:// or rediss://',
      description:
        'Redis or Valkey in which several processes count their rate limits together, like redis://10.0.0.7:6379/1.',
    }),
  ),
  UPSTASH_REDIS_REST_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@]+/?$',
      expected: 'an address like https://eu1-x.upstash.io, without a path',
      description: 'REST address of Upstash, to use instead of REDIS_URL.',
    }),
  ),
  UPSTASH_REDIS_REST_TOKEN: Type.Optional(
    Type.String({
      pattern: '^[!-~]+$',
      expected: 'visible ASCII characters, without blanks',
      description: 'Token for UPSTASH_REDIS_REST_URL.',
    }),
  ),
};

const Shape = Type.Object(STORE_SHAPES);

/** Reads the settings of the store; undefined if none is set. Throws StartError if they are incomplete or name two stores. */
export function readStoreSettings(settings: Static<typeof Shape>): StoreSettings | undefined {
  const { REDIS_URL, UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = settings;
  if ((url === undefined) !== (token === undefined)) {
    const missing = url === undefined ? 'UPSTASH_REDIS_REST_URL' : 'UPSTASH_REDIS_REST_TOKEN';
    throw new StartError(`The settings of Upstash are incomplete: set ${missing} too, or neither of the two.`);
  }
  if (REDIS_URL !== undefined && url !== undefined) {
    throw new StartError('REDIS_URL and UPSTASH_REDIS_REST_URL are both set: set only one of them.');
  }
  for (const [name, address] of Object.entries({ REDIS_URL, UPSTASH_REDIS_REST_URL: url })) {
    // The address may contain a password, so the message does not repeat it.
    if (address !== undefined && !URL.canParse(address))
      throw new StartError(`${name} is not a valid address: write it like the example in "muster --help".`);
  }
  if (url !== undefined && token !== undefined) return { kind: 'upstash', url: url.replace(/\/$/, ''), token };
  return REDIS_URL === undefined ? undefined : { kind: 'redis', url: REDIS_URL };
}
