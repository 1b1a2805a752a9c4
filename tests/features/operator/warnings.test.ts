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
/** A certificate that is valid for a number of days, of which some are left. */
const certificate = (days: number, { left }: { left: number }) => {
  const expires_at = new Date(NOON.getTime() + left * DAY_MS);
  return { valid_from: new Date(expires_at.getTime() - days * DAY_MS), expires_at };
};

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
      message: 'a limit of the service is nearly reached: sockets',
    });
  });

  test('name connections and transactions of PostgreSQL; nothing while it does not answer', () => {
    expect([warnOfConnections(undefined), warnOfTransaction(undefined)]).toEqual([undefined, undefined]);
    expect([warnOfConnections(load(89)), warnOfTransaction(load(1, 5 * MINUTE_MS - 1))]).toEqual([
      undefined,
      undefined,
    ]);
    expect(warnOfConnections(load(90))).toMatchObject({
      code: 'DATABASE_CONNECTIONS_FEW',
      message: 'PostgreSQL has few connections left',
    });
    expect(warnOfTransaction(load(1, 7.5 * MINUTE_MS))).toMatchObject({
      code: 'TRANSACTION_OLD',
      message: 'a transaction of the database has been open for 7 minutes',
    });
  });

  test('name certificates with less than two weeks left, or less than a quarter of their lifetime', () => {
    const fine = new Map([
      ['a.example', certificate(90, { left: 14 })],
      ['b.example', certificate(6, { left: 1.5 })],
      ['c.example', certificate(1, { left: 0.25 })],
    ]);
    expect(warnOfCertificates(fine, NOON)).toBeUndefined();
    const due = new Map([
      ['a.example', certificate(90, { left: 13.9 })],
      ['b.example', certificate(90, { left: 60 })],
      ['c.example', certificate(6, { left: 1.25 })],
      ['d.example', certificate(1, { left: 0.2 })],
      ['e.example', certificate(90, { left: -0.1 })],
    ]);
    expect(warnOfCertificates(due, NOON)).toMatchObject({
      code: 'CERTIFICATE_EXPIRES',
      message:
        'a certificate has to be renewed: a.example expires in 13 days, c.example expires in 30 hours, d.example expires in 4 hours, e.example has expired',
    });
  });
});
