import { type Finding, toFinding } from '../../platform/findings.ts';
import type { LoopState } from '../../platform/loop.ts';
import type { DatabaseLoad } from './tables.ts';
import type { UsedLimit } from './wire.ts';

/** A step that fails once is repeated, which is not worth a warning. */
const FAILURES_MIN = 3;
/** The part of a limit from which on it is nearly reached. */
const NEARLY = 0.9;
const TRANSACTION_MAX_MS = 5 * 60_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_DAYS_MIN = 14;

export function warnOfLoops(loops: readonly LoopState[]): Finding | undefined {
  const failing = loops.filter(({ failures }) => failures >= FAILURES_MIN).map(({ name }) => name);
  if (failing.length === 0) return undefined;
  return toFinding('LOOP_FAILS', `background work fails again and again: ${failing.join(', ')}`);
}

export function warnOfLimits(limits: readonly UsedLimit[]): Finding | undefined {
  const near = limits
    .filter(({ used, max }) => max !== undefined && used >= max * NEARLY)
    .map(({ name, used, max }) => `${name} ${used} of ${max}`);
  if (near.length === 0) return undefined;
  return toFinding('LIMIT_NEARLY_REACHED', `a limit of the service is nearly reached: ${near.join(', ')}`);
}

export function warnOfConnections(load: DatabaseLoad | undefined): Finding | undefined {
  if (!load || load.connections < load.connections_max * NEARLY) return undefined;
  const { connections, connections_max } = load;
  const message = `PostgreSQL has ${connections} of ${connections_max} connections open`;
  return toFinding('DATABASE_CONNECTIONS_FEW', message);
}

export function warnOfTransaction(load: DatabaseLoad | undefined): Finding | undefined {
  if (!load || load.oldest_transaction_ms < TRANSACTION_MAX_MS) return undefined;
  const minutes = Math.floor(load.oldest_transaction_ms / MINUTE_MS);
  return toFinding('TRANSACTION_OLD', `a transaction of the database has been open for ${minutes} minutes`);
}

/** `certificates`: those that are served, by host. */
export function warnOfCertificates(
  certificates: ReadonlyMap<string, { expires_at: Date }>,
  now: Date,
): Finding | undefined {
  const daysOf = (expires_at: Date) => Math.floor((expires_at.getTime() - now.getTime()) / DAY_MS);
  const expiring = [...certificates]
    .filter(([, { expires_at }]) => daysOf(expires_at) < CERTIFICATE_DAYS_MIN)
    .map(([host, { expires_at }]) => `${host} in ${daysOf(expires_at)} days`);
  if (expiring.length === 0) return undefined;
  return toFinding('CERTIFICATE_EXPIRES', `a certificate expires: ${expiring.join(', ')}`);
}
