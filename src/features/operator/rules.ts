import { type Finding, toFinding } from '../../platform/findings.ts';
import type { LoopState } from '../../platform/loop.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../platform/units.ts';
import type { DatabaseLoad } from './tables.ts';
import type { UsedLimit } from './wire.ts';

/** A step that fails once is repeated, which is not worth a warning. */
const FAILURES_MIN = 3;
/** The share of a limit from which on it counts as nearly reached. */
const NEARLY = 0.9;
const TRANSACTION_MAX_MS = 5 * 60_000;
/** A certificate that has less left than this time, and than this part of its lifetime, should have been renewed. */
const CERTIFICATE_LEFT_MIN = { ms: 14 * DAY_MS, part: 1 / 4 };

export function warnOfLoops(loops: readonly LoopState[]): Finding | undefined {
  const failing = loops.filter(({ failures }) => failures >= FAILURES_MIN).map(({ name }) => name);
  if (failing.length === 0) return undefined;
  return toFinding('LOOP_FAILS', `background work fails again and again: ${failing.join(', ')}`);
}

/** Its message has no figures, because everyone may read it. */
export function warnOfLimits(limits: readonly UsedLimit[]): Finding | undefined {
  const near = limits.filter(({ used, max }) => max !== undefined && used >= max * NEARLY).map(({ name }) => name);
  if (near.length === 0) return undefined;
  return toFinding('LIMIT_NEARLY_REACHED', `a limit of the service is nearly reached: ${near.join(', ')}`);
}

/** Its message has no figures, because everyone may read it. */
export function warnOfConnections(load: DatabaseLoad | undefined): Finding | undefined {
  if (!load || load.connections < load.connections_max * NEARLY) return undefined;
  return toFinding('DATABASE_CONNECTIONS_FEW', 'PostgreSQL has few connections left');
}

export function warnOfTransaction(load: DatabaseLoad | undefined): Finding | undefined {
  if (!load || load.oldest_transaction_ms < TRANSACTION_MAX_MS) return undefined;
  const minutes = Math.floor(load.oldest_transaction_ms / MINUTE_MS);
  return toFinding('TRANSACTION_OLD', `a transaction of the database has been open for ${minutes} minutes`);
}

interface Lifetime {
  valid_from: Date;
  expires_at: Date;
}

/** `certificates`: those that are served, by host. */
export function warnOfCertificates(certificates: ReadonlyMap<string, Lifetime>, now: Date): Finding | undefined {
  const due = [...certificates]
    .filter(([, certificate]) => leftOf(certificate, now) < leftMin(certificate))
    .map(([host, certificate]) => `${host} ${describeLeft(leftOf(certificate, now))}`);
  if (due.length === 0) return undefined;
  return toFinding('CERTIFICATE_EXPIRES', `a certificate has to be renewed: ${due.join(', ')}`);
}

function leftOf({ expires_at }: Lifetime, now: Date): number {
  return expires_at.getTime() - now.getTime();
}

function leftMin({ valid_from, expires_at }: Lifetime): number {
  const { ms, part } = CERTIFICATE_LEFT_MIN;
  return Math.min(ms, (expires_at.getTime() - valid_from.getTime()) * part);
}

function describeLeft(left_ms: number): string {
  if (left_ms < 0) return 'has expired';
  if (left_ms < 2 * DAY_MS) return `expires in ${Math.floor(left_ms / HOUR_MS)} hours`;
  return `expires in ${Math.floor(left_ms / DAY_MS)} days`;
}
