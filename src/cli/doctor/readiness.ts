import type { ApiCaller } from '../api-caller.ts';
import { Failure } from '../failure.ts';
import type { Finding } from './finding.ts';
import { describeRefused } from './limits.ts';

interface Readiness {
  warnings?: string[];
  isolation?: { level: string; missing: string[] };
  refused?: { limit: string; count: number }[];
}

/** What to do about what a service says of itself, by a part of its words. */
const ADVICE: [part: string, advice: string][] = [
  ['is a standby', 'Let DATABASE_URL name the primary server of PostgreSQL.'],
  ['is read-only', 'Switch default_transaction_read_only off in PostgreSQL.'],
  ['disk of the database is full', 'Free space on the disk of PostgreSQL, or give it a larger one.'],
  ['does not answer', 'Start PostgreSQL, or correct DATABASE_URL; database_lost in the log of the service says why.'],
  ['disk of the data directory is full', 'Free space on the disk of MUSTER_DATA.'],
  ['MUSTER_DISK_RESERVE_MB', 'Free space on the disk of MUSTER_DATA, or set a smaller MUSTER_DISK_RESERVE_MB.'],
  ['is stopping', 'Start the service again: muster serve'],
  ['does not store uploaded files where', 'Share one storage or bucket; storage_differs in the log names both.'],
];
const ADVICE_OTHERWISE = 'Correct what it names; the service becomes ready by itself.';

/** Checks what a service says of itself: whether it is ready, its warnings, its isolation, and the limits that were hit. */
export async function checkReadiness(api: ApiCaller): Promise<Finding[]> {
  try {
    const { warnings = [], isolation, refused = [] } = await api.get<Readiness>('/health/ready');
    return [...warnings.map(toFinding), ...describeIsolation(isolation), ...describeRefused(refused)];
  } catch (error) {
    if (!(error instanceof Failure && error.refusal)) throw error;
    const { reasons = [error.message] } = (error.refusal.metadata ?? {}) as { reasons?: string[] };
    return reasons.map(toFinding);
  }
}

function toFinding(reason: string): Finding {
  const what = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}${reason.endsWith('.') ? '' : '.'}`;
  const [, advice = ADVICE_OTHERWISE] = ADVICE.find(([part]) => reason.includes(part)) ?? [];
  return { what, advice };
}

function describeIsolation(isolation: Readiness['isolation']): Finding[] {
  if (!isolation || isolation.level === 'full') return [];
  const { level, missing } = isolation;
  const what = `Game servers are not fully isolated (${level}, without ${missing.join(', ') || 'anything'}).`;
  return [
    { what, advice: 'Run servers of strangers only where the level is full; docs/isolation.md says what that needs.' },
  ];
}
