import { describe, expect, test } from 'bun:test';
import {
  warnOfCertificates,
  warnOfConnections,
  warnOfLimits,
  warnOfLoops,
  warnOfTransaction,
} from '../../../src/features/operator/rules.ts';
import type { LoopState } from '../../../src/platform/loop.ts';

const DAY_MS = 24 * 3_600_000;
const NOON = new Date('2026-01-15T12:00:00Z');
const MINUTE_MS = 60_000;

const loop = (name: string, failures: number): LoopState => ({
  name,
  failures,
  steps: 9,
  begun_ts: NOON,
  took_ms: 1,
  next_ts: NOON,
  last_failure: undefined,
});
const load = (connections: number, oldest_transaction_ms = 0) => ({
  connections,
  connections_max: 100,
  oldest_transaction_ms,
});
const inDays = (days: number) => ({ expires_at: new Date(NOON.getTime() + days * DAY_MS) });

describe('warnings of the service', () => {
  test('name loops that have failed three times in a row', () => {
    expect(warnOfLoops([loop('queue', 2), loop('feed', 0)])).toBeUndefined();
    const found = warnOfLoops([loop('queue', 3), loop('feed', 0), loop('servers', 9)]);
    expect(found).toMatchObject({ code: 'LOOP_FAILS', advice: expect.stringContaining('loop_failed') });
    expect(found?.message).toEndWith(': queue, servers');
  });

  test('name limits of which nine tenths are used, and none without a maximum', () => {
    expect(
      warnOfLimits([
        { name: 'sockets', used: 89, max: 100 },
        { name: 'requests', used: 10_000 },
      ]),
    ).toBeUndefined();
    expect(warnOfLimits([{ name: 'sockets', used: 90, max: 100 }])).toMatchObject({
      code: 'LIMIT_NEARLY_REACHED',
      message: expect.stringContaining('sockets 90 of 100'),
    });
  });

  test('name connections and transactions of PostgreSQL; nothing while it does not answer', () => {
    expect([warnOfConnections(undefined), warnOfTransaction(undefined)]).toEqual([undefined, undefined]);
    expect([warnOfConnections(load(89)), warnOfTransaction(load(1, 5 * MINUTE_MS - 1))]).toEqual([
      undefined,
      undefined,
    ]);
    expect(warnOfConnections(load(90))).toMatchObject({ code: 'DATABASE_CONNECTIONS_FEW' });
    expect(warnOfTransaction(load(1, 7.5 * MINUTE_MS))).toMatchObject({
      code: 'TRANSACTION_OLD',
      message: 'a transaction of the database has been open for 7 minutes',
    });
  });

  test('name certificates that expire within two weeks', () => {
    expect(warnOfCertificates(new Map([['a.example', inDays(14)]]), NOON)).toBeUndefined();
    const expiring = new Map([
      ['a.example', inDays(13)],
      ['b.example', inDays(90)],
    ]);
    expect(warnOfCertificates(expiring, NOON)).toMatchObject({
      code: 'CERTIFICATE_EXPIRES',
      message: 'a certificate expires: a.example in 13 days',
    });
  });
});
