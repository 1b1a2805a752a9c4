import { Resolver } from 'node:dns/promises';
import { BulkheadRejectedError, bulkhead } from 'cockatiel';
import { OutboundFailure } from './failure.ts';

const LOOKUPS_AT_ONCE = 16;
const LOOKUPS_WAITING_MAX = 64;
/** For each server, and how often each is asked. */
const TIMEOUT_MS = 1_500;
const TRIES = 2;
/** For all of it. */
const DEADLINE_MS = 5_000;
const RECORDS_MAX = 64;
/** What a resolver says of a name that has no such record. */
const NONE = new Set(['ENOTFOUND', 'ENODATA']);

/** Gives the texts of a name's TXT records. */
export type TxtLookup = (name: string) => Promise<string[]>;

/** Makes what asks name servers, `ADDRESS` or `ADDRESS:PORT`; the machine's when there are none. */
export function createTxtLookup(servers: readonly string[]): TxtLookup {
  const lane = bulkhead(LOOKUPS_AT_ONCE, LOOKUPS_WAITING_MAX);

  async function lookUp(name: string): Promise<string[]> {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers.length > 0) resolver.setServers(servers);
    const deadline = setTimeout(() => resolver.cancel(), DEADLINE_MS);
    try {
      return (await resolver.resolveTxt(name)).slice(0, RECORDS_MAX).map((pieces) => pieces.join(''));
    } catch (cause) {
      const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
      if (NONE.has(code)) return [];
      throw new OutboundFailure('unreachable', 'no name server answers for the name', cause);
    } finally {
      clearTimeout(deadline);
    }
  }

  /** No record is an empty list. Throws OutboundFailure `unreachable` and `too_busy`. */
  return async (name) => {
    try {
      return await lane.execute(() => lookUp(name));
    } catch (error) {
      if (error instanceof BulkheadRejectedError) throw new OutboundFailure('too_busy', 'too many names wait', error);
      throw error;
    }
  };
}
