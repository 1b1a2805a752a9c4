import type { Events } from '../events.ts';
import type { Verdict } from '../limits/counters.ts';
import { inOneMinute, type Limit, perMinute } from '../limits/limit.ts';
import { assertWithin, type Limits } from '../limits/limits.ts';
import { networkOf } from '../networks.ts';
import { type Soon, whenThere } from '../soon.ts';
import { type Caller, nameCaller } from '../tokens/caller.ts';
import { type CallerKey, readCallerKey } from '../watch/caller-slots.ts';
import type { Addresses, PeerServer } from './addresses.ts';

/**
 * Polls that stand somewhere. Each is answered when there is something new, and comes again: so often as things change, for
 * all who play behind one address. What they are answered with is read once for all of them.
 */
const POLLS = perMinute('polls', 12_000, { window_ms: 10_000, counted: 'here' });
/** Requests whose token is none of ours, or too old: a game that was shipped with one may have many players. */
const REFUSED_TOKENS = inOneMinute('refused-tokens', 1_200, { by: 'address', counted: 'here' });

/** What is known of a request when it is counted. */
interface Counted {
  request: Request;
  server: PeerServer | null;
  address: () => string;
  /** Of the answer. */
  headers: Record<string, string>;
}

/** Counts requests against their limits. */
export interface Counting {
  /**
   * Counts a request, and says in the headers of its answer how many more there may be. A promise only where it has to be
   * waited for. Throws API_RATE_LIMIT, and LIMITS_UNAVAILABLE where a limit says so.
   */
  count(limit: Limit, caller: Caller | undefined, request: Counted): Soon<void>;
  /** The same for one whose token was refused. */
  countRefused(request: Counted): Soon<void>;
}

interface CountingDependencies {
  limits: Limits;
  addresses: Addresses;
  events: Events;
}

export function createCounting({ limits, addresses, events }: CountingDependencies): Counting {
  let is_proxy_told = false;

  function settle(verdict: Verdict, { request, server, address, headers }: Counted): void {
    headers['ratelimit-limit'] = String(verdict.limit);
    headers['ratelimit-remaining'] = String(verdict.remaining);
    headers['ratelimit-reset'] = String(Math.ceil(verdict.reset_in_ms / 1_000));
    if (!verdict.is_within && !is_proxy_told && addresses.isOfUnknownProxy(request, server)) {
      is_proxy_told = true;
      events.emit({ event: 'proxy_not_trusted', address: address() });
    }
    assertWithin(verdict);
  }

  function count(limit: Limit, caller: Caller | undefined, request: Counted): Soon<void> {
    const verdict = limits.count(limit, nameCounted(limit, caller, request.address));
    return verdict && whenThere(verdict, (counted) => settle(counted, request));
  }

  return { count, countRefused: (request) => count(REFUSED_TOKENS, undefined, request) };
}

/** The limit of a question: who asks with an index of ours has been answered before, and waits for what is new. */
export function limitOf(route: { limit: Limit }, is_poll: boolean): Limit {
  return is_poll ? POLLS : route.limit;
}

/** As whom somebody is counted against a limit. */
export function nameCounted(limit: Limit, caller: Caller | undefined, address: () => string): string {
  return readCallerKey(nameWatcher(limit.by === 'caller' ? caller : undefined, address));
}

/** Who watches: everybody who plays has the same public token, so there it is the address that counts. */
export function nameWatcher(caller: Caller | undefined, address: () => string): CallerKey {
  if (!caller) return () => networkOf(address());
  const is_shared = caller.kind === 'public' || caller.kind === 'development';
  return is_shared ? () => `${nameCaller(caller)} ${networkOf(address())}` : nameCaller(caller);
}
