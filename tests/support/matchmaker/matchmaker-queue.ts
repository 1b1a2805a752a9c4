import { expect } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { FindBody } from '../../../src/features/lobbies/wire.ts';
import { waitFor } from '../wait.ts';
import type { Matchmaker, SentRequest } from './matchmaker.ts';
import type { Expected, Oracle, OracleWaiter } from './matchmaker-oracle.ts';
import type { Result } from './matchmaker-run.ts';

const LONG_MS = 240_000;
const TOO_MANY = 'MATCHMAKER_TOO_MANY_LOBBIES';

interface QueueOptions {
  matchmaker: Matchmaker;
  oracle: Oracle;
  namespace_id: string;
  resultOf(request: SentRequest): Promise<Result>;
  expectResult(request: SentRequest, result: Result, expected: Expected, known?: readonly string[]): Promise<void>;
  count(what: string): void;
  /** The version that the namespace is on. */
  version(): string;
}

/** The finds that wait in the queue, and the oracle's prediction of them. */
export function createQueueRun({
  matchmaker,
  oracle,
  namespace_id,
  resultOf,
  expectResult,
  count,
  version,
}: QueueOptions) {
  const asked = new Map<OracleWaiter, SentRequest>();

  async function read() {
    const rows = await matchmaker.database.queries.execute<{ ticket: string; version_id: string }>(sql`
      select ticket, version_id from queued_finds where namespace_id = ${namespace_id} order by place`);
    return [...rows];
  }

  function leave(waiter: OracleWaiter): SentRequest {
    const request = asked.get(waiter);
    if (!request) throw new Error('no find waits with this ticket');
    asked.delete(waiter);
    oracle.queue = oracle.queue.filter((one) => one !== waiter);
    return request;
  }

  /** Checks that exactly the oracle's finds wait, in its order, with the current version. */
  async function check(): Promise<void> {
    const expected = oracle.queue.map(({ ticket }) => ({ ticket, version_id: version() }));
    await waitFor(async () => Bun.deepEquals(await read(), expected), 'the queue').catch(() => {});
    expect(await read()).toEqual(expected);
  }

  return {
    /** Sends a find with `wait_ms`. */
    async ask(body: FindBody, client: number): Promise<void> {
      const ticket = crypto.randomUUID();
      const expected = oracle.find(body, client);
      const waiting = oracle.queue.filter((one) => one.client === client);
      const request = matchmaker.ask(namespace_id, {
        kind: 'find',
        client,
        body: { ...body, ticket, wait_ms: LONG_MS },
      });
      let is_answered = false;
      const answering = resultOf(request).finally(() => {
        is_answered = true;
      });
      const isWaiting = async () => (await read()).some((row) => row.ticket === ticket);
      // Stops reading once the find has been answered, because repeated reads would keep the machine busy.
      const waits = waitFor(async () => is_answered || (await isWaiting()), 'the find to wait');
      const result = await Promise.race([answering, waits]);
      waits.catch(() => {});
      const seats = waiting.reduce((sum, one) => sum + (one.body.players ?? 1), body.players ?? 1);
      const meets_limit = 'codes' in expected && expected.codes[0] === TOO_MANY;
      if (result === true) {
        expect(meets_limit && seats <= oracle.limits.players_max).toBe(true);
        const waiter = { ticket, body, client };
        oracle.queue.push(waiter);
        asked.set(waiter, request);
        count('wait');
      } else if (meets_limit) {
        expect(seats).toBeGreaterThan(oracle.limits.players_max);
        await expectResult(request, result, { codes: ['MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'] });
      } else {
        await expectResult(request, result, expected);
      }
    },
    /** Checks that each waiting find for which the oracle has a lobby gets it, in queue order, and the others wait. */
    async settle(): Promise<void> {
      if (oracle.queue.length > 0) await matchmaker.deliverNotifications(namespace_id);
      const known = oracle.lobbies.map(({ lobby_id }) => lobby_id);
      for (const waiter of [...oracle.queue]) {
        const before = oracle.queue.slice(0, oracle.queue.indexOf(waiter));
        const expected = oracle.find(waiter.body, waiter.client, before);
        if ('codes' in expected && expected.codes[0] === TOO_MANY) continue;
        const request = leave(waiter);
        const result = await resultOf(request);
        await expectResult(request, result, expected, known);
        count(`queued ${'code' in result ? result.code : 'creates' in expected ? 'new lobby' : 'seat'}`);
      }
      await check();
    },
    /** Aborts a waiting find, as a client that disconnects. */
    async abort(number: number): Promise<void> {
      const waiter = oracle.queue[number % Math.max(1, oracle.queue.length)];
      if (!waiter) return;
      const request = leave(waiter);
      request.abort();
      expect(await request.outcome).toEqual({ code: 'API_CLIENT_GONE' });
      count('abort while in the queue');
    },
    async sweep(): Promise<void> {
      for (const request of asked.values()) {
        request.abort();
        await request.outcome;
      }
    },
  };
}
