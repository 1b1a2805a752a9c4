import { expect } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { FindBody } from '../../src/features/lobbies/wire.ts';
import type { Asking, Matchmaker } from './matchmaker.ts';
import type { Expected, Oracle, OracleWaiter } from './matchmaker-oracle.ts';
import type { Came } from './matchmaker-run.ts';
import { waitFor } from './wait.ts';

const LONG_MS = 240_000;
const TOO_MANY = 'MATCHMAKER_TOO_MANY_LOBBIES';

interface QueueOptions {
  matchmaker: Matchmaker;
  oracle: Oracle;
  namespace_id: string;
  come(asking: Asking): Promise<Came>;
  land(asking: Asking, came: Came, expected: Expected): Promise<void>;
  count(what: string): void;
  /** The version that the namespace is on. */
  version(): string;
}

/** The finds that wait for their turn, beside what the oracle says of them. */
export function createQueueRun({ matchmaker, oracle, namespace_id, come, land, count, version }: QueueOptions) {
  const asked = new Map<OracleWaiter, Asking>();

  async function read() {
    const rows = await matchmaker.database.queries.execute<{ ticket: string; version_id: string }>(sql`
      select ticket, version_id from queued_finds where namespace_id = ${namespace_id} order by place`);
    return [...rows];
  }

  function leave(waiter: OracleWaiter): Asking {
    const asking = asked.get(waiter);
    if (!asking) throw new Error('no find waits with this ticket');
    asked.delete(waiter);
    oracle.queue = oracle.queue.filter((one) => one !== waiter);
    return asking;
  }

  /** The finds of the oracle wait, in its order, on the version of now; no other find does. */
  async function check(): Promise<void> {
    const expected = oracle.queue.map(({ ticket }) => ({ ticket, version_id: version() }));
    await waitFor(async () => Bun.deepEquals(await read(), expected), 'the queue').catch(() => {});
    expect(await read()).toEqual(expected);
  }

  return {
    /** Asks with a find that is ready to wait. */
    async ask(body: FindBody, client: number): Promise<void> {
      const ticket = crypto.randomUUID();
      const expected = oracle.find(body, client);
      const waiting = oracle.queue.filter((one) => one.client === client);
      const asking = matchmaker.ask(namespace_id, {
        kind: 'find',
        client,
        body: { ...body, ticket, wait_ms: LONG_MS },
      });
      let is_answered = false;
      const coming = come(asking).finally(() => {
        is_answered = true;
      });
      const isWaiting = async () => (await read()).some((row) => row.ticket === ticket);
      // Stops looking for a find that has been answered: many looks would keep the machine busy.
      const waits = waitFor(async () => is_answered || (await isWaiting()), 'the find to wait');
      const came = await Promise.race([coming, waits]);
      waits.catch(() => {});
      const seats = waiting.reduce((sum, one) => sum + (one.body.players ?? 1), body.players ?? 1);
      const meets_limit = 'codes' in expected && expected.codes[0] === TOO_MANY;
      if (came === true) {
        expect(meets_limit && seats <= oracle.limits.players_max).toBe(true);
        const waiter = { ticket, body, client };
        oracle.queue.push(waiter);
        asked.set(waiter, asking);
        count('wait');
      } else if (meets_limit) {
        expect(seats).toBeGreaterThan(oracle.limits.players_max);
        await land(asking, came, { codes: ['MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'] });
      } else {
        await land(asking, came, expected);
      }
    },
    /** Lets each waiting find that the oracle has a lobby for get it, in queue order; the others wait. */
    async settle(): Promise<void> {
      if (oracle.queue.length > 0) await matchmaker.untilHeard(namespace_id);
      for (const waiter of [...oracle.queue]) {
        const before = oracle.queue.slice(0, oracle.queue.indexOf(waiter));
        const expected = oracle.find(waiter.body, waiter.client, before);
        if ('codes' in expected && expected.codes[0] === TOO_MANY) continue;
        const asking = leave(waiter);
        const came = await come(asking);
        await land(asking, came, expected);
        count(`turn ${'code' in came ? came.code : 'makes' in expected ? 'new lobby' : 'seat'}`);
      }
      await check();
    },
    /** The client of a waiting find goes away. */
    async hangUp(number: number): Promise<void> {
      const waiter = oracle.queue[number % Math.max(1, oracle.queue.length)];
      if (!waiter) return;
      const asking = leave(waiter);
      asking.hangUp();
      expect(await asking.outcome).toEqual({ code: 'API_REQUEST_TIMEOUT' });
      count('hang up while waiting');
    },
    async sweep(): Promise<void> {
      for (const asking of asked.values()) {
        asking.hangUp();
        await asking.outcome;
      }
    },
  };
}
