import { Type } from '@sinclair/typebox';
import { ServiceError } from '../errors.ts';
import { FINDING_CODES, type Finding, toFinding } from '../findings.ts';
import { inEachMinute } from '../limits/limit.ts';
import { LISTED_MAX, type RefusedRequests } from '../limits/refusals.ts';
import { shareRuns } from '../runs.ts';
import { type Route, route } from './route.ts';
import { oneOf } from './shapes.ts';

const Status = Type.Object({ status: Type.String() });

/** A monitor may have the same address as all clients, and must not be refused because of them. */
const HEALTH_CHECKS = inEachMinute('health', 60_000, { counted: 'here' });

/** Anyone may ask, and the checks read the database: they run once for all requests of this time. */
const RUNS_APART_MS = 100;

const FindingShape = Type.Object(
  {
    code: oneOf('FindingCode', FINDING_CODES),
    message: Type.String({ description: 'What is wrong: a sentence without its capital letter and full stop.' }),
    advice: Type.String({ description: 'What to do about it.' }),
  },
  { title: 'Finding' },
);

const Readiness = Type.Object({
  status: Type.String(),
  warnings: Type.Optional(
    Type.Array(FindingShape, { description: 'What the operator should fix although the service does its work.' }),
  ),
  isolation: Type.Optional(
    Type.Object(
      { level: Type.String(), missing: Type.Array(Type.String()) },
      {
        description: 'How well game servers of this machine are isolated (full, partial or off), and what is missing.',
      },
    ),
  ),
  refused: Type.Optional(
    Type.Array(Type.Object({ limit: Type.String(), count: Type.Integer() }), {
      description: 'Requests that rate limits of this process have refused within the last hour, the most first.',
      maxItems: LISTED_MAX,
    }),
  ),
});

/** Checks something that the service needs. Returns what is wrong with it; undefined if nothing is. */
export type HealthCheck = () => Promise<Finding | undefined>;

/** How well game servers are isolated: full, partial or off; and what is missing. */
export interface Isolation {
  level: string;
  missing: string[];
}

interface HealthOptions {
  checks: HealthCheck[];
  /** Each returns what an operator should fix although the service works. One that fails is left out. */
  warnings: HealthCheck[];
  /** Returns how well game servers are isolated, if that is known. That of a container engine is known once it answers. */
  readIsolation: () => Isolation | undefined;
  /** Returns how many requests rate limits have refused within the last hour. */
  listRefused: () => RefusedRequests[];
}

/** Routes that tell whether the process runs, and whether it can do its work. */
export function healthRoutes({ checks, warnings, readIsolation, listRefused }: HealthOptions): Route[] {
  const checkReadiness = shareRuns(async () => {
    const reasons = await runChecks(checks);
    if (reasons.length > 0) throw notReady(reasons);
    const refused = listRefused();
    const isolation = readIsolation();
    const warned = [...(await runWarnings(warnings)), ...warnOfIsolation(isolation), ...warnOfRefused(refused)];
    return {
      status: 'ok',
      ...(warned.length > 0 && { warnings: warned }),
      ...(isolation && { isolation }),
      ...(refused.length > 0 && { refused }),
    };
  }, RUNS_APART_MS);

  return [
    route(
      'GET',
      '/health/live',
      {
        operation: 'checkLive',
        summary: 'Succeeds while the process answers.',
        allow: 'anyone',
        limit: HEALTH_CHECKS,
        response: Status,
      },
      async () => ({ status: 'ok' }),
    ),
    route(
      'GET',
      '/health/ready',
      {
        operation: 'checkReady',
        summary:
          'Succeeds while the service can do its work. If it cannot, metadata.reasons says why, and what to do about each.',
        allow: 'anyone',
        limit: HEALTH_CHECKS,
        response: Readiness,
        errors: ['SERVICE_NOT_READY'],
      },
      checkReadiness,
    ),
  ];
}

/** Returns the error of a service that cannot do its work. */
export function notReady(reasons: Finding[]): ServiceError<'SERVICE_NOT_READY'> {
  const messages = reasons.map(({ message }) => message).join('; ');
  return new ServiceError('SERVICE_NOT_READY', { reasons: messages }, { metadata: { reasons } });
}

function warnOfIsolation(isolation: Isolation | undefined): Finding[] {
  if (!isolation || isolation.level === 'full') return [];
  const { level, missing } = isolation;
  const without = missing.length === 0 ? '' : `, without ${missing.join(', ')}`;
  return [toFinding('ISOLATION_INCOMPLETE', `game servers are not fully isolated (${level}${without})`)];
}

function warnOfRefused(refused: RefusedRequests[]): Finding[] {
  if (refused.length === 0) return [];
  const limits = refused.map(({ limit, count }) => `${count} by the limit "${limit}"`).join(', ');
  return [toFinding('REQUESTS_REFUSED', `rate limits refused requests within the last hour: ${limits}`)];
}

/** Returns what is wrong by the checks. */
async function runChecks(checks: HealthCheck[]): Promise<Finding[]> {
  return (await Promise.all(checks.map((check) => check()))).filter((reason) => reason !== undefined);
}

/** Returns the warnings, without those that cannot be checked at the moment: the service works all the same. */
async function runWarnings(warnings: HealthCheck[]): Promise<Finding[]> {
  return await runChecks(warnings.map((warning) => () => warning().catch(() => undefined)));
}
