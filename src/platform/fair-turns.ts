import { bulkhead, type IPolicy, wrap } from 'cockatiel';
import { LRUCache } from 'lru-cache';

/** Owners of work that are remembered; each takes a few hundred bytes. */
const OWNERS_MAX = 1_000;

interface FairTurnsOptions {
  /** Maximum of work under way. */
  at_once_max: number;
  /** Maximum of one owner's work under way, so that it never takes all turns. */
  of_owner_max: number;
}

/**
 * Returns a function that runs work in fair turns: the work of one owner, such as a game, takes only some of them. The
 * caller limits how much waits.
 */
export function createFairTurns({ at_once_max, of_owner_max }: FairTurnsOptions) {
  const all = bulkhead(at_once_max, Number.POSITIVE_INFINITY);
  const owners = new LRUCache<string, IPolicy>({ max: OWNERS_MAX });
  return <Result>(owner: string, work: () => Promise<Result>): Promise<Result> => {
    const of_owner = owners.get(owner) ?? bulkhead(of_owner_max, Number.POSITIVE_INFINITY);
    owners.set(owner, of_owner);
    return wrap(of_owner, all).execute(work);
  };
}
