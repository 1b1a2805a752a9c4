import { BulkheadRejectedError, bulkhead, type IPolicy, TaskCancelledError, wrap } from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../platform/errors.ts';

export interface TurnLimits {
  /** Maximum number of concurrent tasks. */
  at_once: number;
  /** Maximum length of each queue: the tasks of a visitor, the visitors of a site, and the sites. */
  waiting_max: number;
  /** Time after which a waiting task is given up. */
  wait_ms: number;
}

/** Bulkheads of visitors and sites; each takes a few hundred bytes. */
const BULKHEADS_MAX = 10_000;

/** The site and the address of the visitor that a task belongs to. */
interface Visitor {
  site: string;
  address: string;
}

/**
 * Runs tasks in fair turns: each visitor has one task in the queue of the site, and each site one in the queue of all
 * sites. So neither a visitor nor a site with many tasks delays the others. Throws CDN_BUSY for a task if a queue is full
 * or the task has waited too long.
 */
export function createTurns({ at_once, waiting_max, wait_ms }: TurnLimits) {
  const all = bulkhead(at_once, waiting_max);
  const bulkheads = new LRUCache<string, IPolicy>({ max: BULKHEADS_MAX });

  function bulkheadOf(name: string): IPolicy {
    const found = bulkheads.get(name) ?? bulkhead(1, waiting_max);
    bulkheads.set(name, found);
    return found;
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
      const turn = wrap(bulkheadOf(`${site} ${address}`), bulkheadOf(site), all).execute(begin, waiting.signal);
      return await Promise.race([turn, gaveUp]);
    } catch (error) {
      const is_refused = error instanceof BulkheadRejectedError || error instanceof TaskCancelledError;
      throw is_refused ? new ServiceError('CDN_BUSY', {}) : error;
    } finally {
      clearTimeout(timer);
    }
  };
}
