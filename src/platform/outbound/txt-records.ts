import { Resolver } from 'node:dns/promises';
import { BulkheadRejectedError, bulkhead } from 'cockatiel';
import { OutboundFailure } from './failure.ts';

const LOOKUPS_AT_ONCE = 16;
const LOOKUPS_WAITING_MAX = 64;
/** Time limit for each name server, and the number of tries. */
const TIMEOUT_MS = 1_500;
const TRIES = 2;
/** Time limit for the whole lookup. */
const DEADLINE_MS = 5_000;
const RECORDS_MAX = 64;
/** The resolver's codes for a name without TXT records. */
const NONE = new Set(['ENOTFOUND', 'ENODATA']);

/** Returns the texts of a name's TXT records; an empty list if there are none. */
export type TxtLookup = (name: string) => Promise<string[]>;

/** Creates a lookup by name servers (`ADDRESS` or `ADDRESS:PORT`), or by those of the machine if none are given. */
export function createTxtLookup(servers: readonly string[]): TxtLookup {
  const lookups = bulkhead(LOOKUPS_AT_ONCE, LOOKUPS_WAITING_MAX);

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
  return async (name) => {
    try {
      return await lookups.execute(() => lookUp(name));
    } catch (error) {
      if (error instanceof BulkheadRejectedError)
        throw new OutboundFailure('too_busy', 'too many lookups wait', { cause: error });
      throw error;
    }
  };
}
