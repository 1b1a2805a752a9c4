import { Resolver } from 'node:dns/promises';
import { BulkheadRejectedError, bulkhead, type IPolicy } from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { SlotQueue } from '../limits/slot-queue.ts';
import { OutboundFailure } from './failure.ts';

/** Lookups of all games together. */
const IN_ALL = { at_once: 16, waiting_max: 64 };
/** Lookups of one game, whose name server may be silent. */
const OF_GAME = { at_once: 4, waiting_max: 8 };
const GAMES_MAX = 4_096;
/** Time limit for each name server, and the number of tries. */
const TIMEOUT_MS = 1_500;
const TRIES = 2;
/** Time limit for the whole lookup. */
const DEADLINE_MS = 5_000;
const RECORDS_MAX = 64;
/** The resolver's codes for a name without TXT records. */
const NONE = new Set(['ENOTFOUND', 'ENODATA']);

/** Returns the texts of a name's TXT records, for a game; an empty list if there are none. */
export type TxtLookup = (name: string, game_id: string) => Promise<string[]>;

/** Creates a lookup by name servers (`ADDRESS` or `ADDRESS:PORT`), or by those of the machine if none are given. */
export function createTxtLookup(servers: readonly string[]): TxtLookup {
  const in_all = new SlotQueue(IN_ALL);
  const games = new LRUCache<string, IPolicy>({ max: GAMES_MAX });

  function bulkheadOf(game_id: string): IPolicy {
    const found = games.get(game_id) ?? bulkhead(OF_GAME.at_once, OF_GAME.waiting_max);
    games.set(game_id, found);
    return found;
  }

  async function lookUp(name: string): Promise<string[]> {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers.length > 0) resolver.setServers(servers);
    const deadline = setTimeout(() => resolver.cancel(), DEADLINE_MS);
    try {
      return (await resolver.resolveTxt(name)).slice(0, RECORDS_MAX).map((pieces) => pieces.join(''));
    } catch (cause) {
      const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
      if (NONE.has(code)) return [];
      throw new OutboundFailure('unreachable', 'no name server answered', { cause });
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Throws OutboundFailure `unreachable` or `too_busy`. */
  return async (name, game_id) => {
    try {
      return await bulkheadOf(game_id).execute(() => in_all.run(game_id, () => lookUp(name)));
    } catch (error) {
      if (error instanceof BulkheadRejectedError)
        throw new OutboundFailure('too_busy', 'too many lookups wait', { cause: error });
      throw error;
    }
  };
}
