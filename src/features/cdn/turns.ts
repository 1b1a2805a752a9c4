import { BulkheadRejectedError, bulkhead, type IPolicy, TaskCancelledError, wrap } from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../platform/errors.ts';

export interface TurnLimits {
  /** Works under way at one time. */
  at_once: number;
  /** Works of one visitor that may wait, visitors of one site, and sites. */
  waiting_max: number;
  /** Time after which one that waits is given up. */
  wait_ms: number;
}

/** Lanes that are kept; each is a few hundred bytes. */
const LANES_MAX = 10_000;

/** The address and the site that a piece of work counts for. */
interface Visitor {
  site: string;
  address: string;
}

/**
 * Runs works of many in fair turns: of each visitor one waits among those of its site, and of each site one waits for its
 * turn among all. So neither a visitor nor a site with many works takes the turns of others. Throws CDN_BUSY for a work
 * that cannot wait or waited for too long.
 */
export function createTurns({ at_once, waiting_max, wait_ms }: TurnLimits) {
  const all = bulkhead(at_once, waiting_max);
  const lanes = new LRUCache<string, IPolicy>({ max: LANES_MAX });

  function laneOf(name: string): IPolicy {
    const lane = lanes.get(name) ?? bulkhead(1, waiting_max);
    lanes.set(name, lane);
    return lane;
  }

  return async function takeTurn<Result>({ site, address }: Visitor, work: () => Promise<Result>): Promise<Result> {
    const waiting = new AbortController();
    const { promise: gaveUp, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      waiting.abort();
      reject(new ServiceError('CDN_BUSY', {}));
    }, wait_ms);
    const begin = () => {
      clearTimeout(timer);
      return work();
    };
    try {
      const turn = wrap(laneOf(`${site} ${address}`), laneOf(site), all).execute(begin, waiting.signal);
      return await Promise.race([turn, gaveUp]);
    } catch (error) {
      const is_refused = error instanceof BulkheadRejectedError || error instanceof TaskCancelledError;
      throw is_refused ? new ServiceError('CDN_BUSY', {}) : error;
    } finally {
      clearTimeout(timer);
    }
  };
}
