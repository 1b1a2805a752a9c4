import type { Events } from '../events.ts';
import type { CallerKey } from '../limits/caller-slots.ts';
import type { Verdict } from '../limits/counters.ts';
import { averagePerMinute, inEachMinute, type Limit } from '../limits/limit.ts';
import { assertWithin, type Limits } from '../limits/limits.ts';
import { type MaybePromise, whenKnown } from '../maybe-promise.ts';
import { countingKeyOf, createMachineAddressCheck } from '../networks.ts';
import { type Caller, type CallerKind, nameCaller } from '../tokens/caller.ts';

/**
 * The limit of polls with an index of one caller. With a shared token, that is all players behind one address. It is high,
 * because each change answers all polls at once and they come again, and because an answer is read once for all of them.
 */
const POLLS = averagePerMinute('polls', 12_000, { window_ms: 10_000, counted: 'here' });
/** Requests with an invalid or expired token. A game that was released with one may have many players. */
const REFUSED_TOKENS = inEachMinute('refused-tokens', 1_200, { by: 'address', counted: 'here' });
/**
 * Verifications of tokens, each of which costs as much as the rest of a request. It is high, because above it valid tokens
 * are refused, too, unless they were used lately.
 */
const VERIFICATIONS = inEachMinute('token-verifications', 12_000, { by: 'address', counted: 'here' });

/** Lookups of hosts that this process does not remember: each reads the database, and scanners guess names. */
const HOST_LOOKUPS = inEachMinute('host-lookups', 600, { by: 'address', counted: 'here' });

/** Kinds of tokens that many callers have. */
const SHARED_KINDS: ReadonlySet<CallerKind> = new Set(['public', 'development', 'share']);

/** A client, whose address may be looked up on first use. */
interface Client {
  readonly address: string;
}

/** A client whose requests are counted, or one of its requests. */
export interface CountedClient extends Client {
  /** Whether it seems to be an untrusted proxy, whose clients all have its address. */
  readonly is_of_untrusted_proxy: boolean;
  /** Headers of the answer, to which those of the limit are added. */
  readonly headers?: Record<string, string>;
}

/** Counts requests against rate limits. */
export interface RateLimiter {
  /**
   * Counts a request, and adds to the headers of its answer how many more are allowed. Throws API_RATE_LIMIT, and
   * LIMITS_UNAVAILABLE where a limit says so.
   */
  count(limit: Limit, caller: Caller | undefined, client: CountedClient): MaybePromise<void>;
  /** Counts a read of the database for the host of a request, or of the page that sent it. Throws what `count` does. */
  countHostLookup(client: CountedClient): MaybePromise<void>;
  /**
   * Counts a verification of a token, before it is done, unless a program of this machine asked for it. Throws what `count`
   * does.
   */
  countVerification(client: CountedClient): MaybePromise<void>;
  /** Counts a token that was refused, or a request without the token that it needs. Throws what `count` does. */
  countRefusedToken(client: CountedClient): MaybePromise<void>;
}

interface RateLimiterDependencies {
  /** Where the service listens. */
  host: string;
  limits: Limits;
  events: Events;
  /** Called for each request that is over a limit. */
  onRefused: (limit: Limit) => void;
}

export function createRateLimiter({ host, limits, events, onRefused }: RateLimiterDependencies): RateLimiter {
  const isOfMachine = createMachineAddressCheck(host);
  let has_reported_proxy = false;

  function apply(verdict: Verdict, limit: Limit, client: CountedClient): void {
    const { headers } = client;
    if (headers) {
      headers['ratelimit-limit'] = String(verdict.limit);
      headers['ratelimit-remaining'] = String(verdict.remaining);
      headers['ratelimit-reset'] = String(Math.ceil(verdict.reset_in_ms / 1_000));
    }
    if (!verdict.is_within && !has_reported_proxy && client.is_of_untrusted_proxy) {
      has_reported_proxy = true;
      events.emit({ event: 'proxy_not_trusted', address: client.address });
    }
    if (!verdict.is_within) onRefused(limit);
    assertWithin(verdict);
  }

  function count(limit: Limit, caller: Caller | undefined, client: CountedClient): MaybePromise<void> {
    const counted = limits.count(limit, keyOf(limit.by === 'caller' ? caller : undefined, client));
    return whenKnown(counted, (verdict) => verdict && apply(verdict, limit, client));
  }

  /**
   * Does not count programs of this machine: its game servers share one address, so one of them could use up the
   * verifications of all. Clients behind an untrusted proxy on this machine are counted.
   */
  function countVerification(client: CountedClient): MaybePromise<void> {
    if (isOfMachine(client.address) && !client.is_of_untrusted_proxy) return;
    return count(VERIFICATIONS, undefined, client);
  }

  return {
    count,
    countHostLookup: (client) => count(HOST_LOOKUPS, undefined, client),
    countVerification,
    countRefusedToken: (client) => count(REFUSED_TOKENS, undefined, client),
  };
}

/** Returns the limit of a request. A poll with an index has the limit of polls, because each change brings it back. */
export function limitFor(route: { limit: Limit }, is_poll: boolean): Limit {
  return is_poll ? POLLS : route.limit;
}

/**
 * Returns the key by which a caller is counted. All players of a game share one public token, and many people one link, so
 * each is identified by address too.
 */
export function keyOf(caller: Caller | undefined, client: Client): string {
  if (!caller) return countingKeyOf(client.address);
  return isShared(caller) ? `${nameCaller(caller)} ${countingKeyOf(client.address)}` : nameCaller(caller);
}

/** Returns the key of a caller; a function that returns it if the client's address has to be looked up. */
export function callerKey(caller: Caller | undefined, client: Client): CallerKey {
  return !caller || isShared(caller) ? () => keyOf(caller, client) : keyOf(caller, client);
}

const isShared = ({ kind }: Caller): boolean => SHARED_KINDS.has(kind);
