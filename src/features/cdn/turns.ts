import { BulkheadRejectedError, bulkhead, type IPolicy, TaskCancelledError, wrap } from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../platform/errors.ts';

export interface TurnLimits {
  /** Maximum of concurrent tasks. */
  at_once: number;
  /** Maximum of waiting tasks of one visitor, of visitors of one site, and of sites. */
  waiting_max: number;
  /** Time after which a waiting task is given up. */
  wait_ms: number;
}

/** Maximum of lanes; each takes a few hundred bytes. */
const LANES_MAX = 10_000;

/** The address and the site of a task. */
interface Visitor {
  site: string;
  address: string;
}

/**
 * Runs tasks in fair turns: one task of each visitor waits among those of its site, and one of each site among all. So
 * neither a visitor nor a site with many tasks delays the others. Throws CDN_BUSY for a task that cannot wait or has
 * waited too long.
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
