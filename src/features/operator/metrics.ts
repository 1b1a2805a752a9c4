import { Counter, Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import type { LoopState } from '../../platform/loop.ts';
import { readMemory } from './process-limits.ts';
import type { DatabaseLoad } from './tables.ts';
import type { ServiceSample, UsedLimit } from './wire.ts';

export const METRICS_TYPE = Registry.OPENMETRICS_CONTENT_TYPE;

const MS_PER_S = 1_000;
const US_PER_S = 1_000_000;

/** The values that metrics are written from. No value is text that a tenant chose, and each list has a limit. */
export interface Readings {
  now: Date;
  version: string;
  start_ts: string;
  limits: readonly UsedLimit[];
  loops: readonly LoopState[];
  last_sample: ServiceSample | undefined;
  database_load: DatabaseLoad | undefined;
  /** Answered requests since the start, by status. */
  requests: ReadonlyMap<number, number>;
  failed_requests: number;
  /** Requests for seats since the start: those with seats by kind, and the others by the code of their error. */
  seated: Readonly<Record<string, number>>;
  refused: ReadonlyMap<string, number>;
  /** Undefined if it could not be read. */
  held: Held | undefined;
  /** The finds that wait in all namespaces; undefined if they could not be read. */
  waiting: readonly { finds: number; waiting_since_ts: Date }[] | undefined;
}

/** What runs on the machines that this process holds. */
export interface Held {
  /** By state. */
  servers: Readonly<Record<string, number>>;
  lobbies: number;
  players: number;
}

type MetricType = 'gauge' | 'counter';
/** Values by the only label of a metric. */
type Labelled = readonly (readonly [label: string, value: number])[];

/** Writes metrics in the text format of OpenMetrics. They are read for each scrape, so no state is kept. */
export async function writeMetrics(readings: Readings): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(METRICS_TYPE);

  function add(type: MetricType, name: string, help: string, value: number | undefined): void {
    if (value === undefined) return;
    const options = { name, help, registers: [registry] };
    if (type === 'gauge') new Gauge(options).set(value);
    else new Counter(options).inc(value);
  }

  function addLabelled(
    type: MetricType,
    name: string,
    help: string,
    label: string,
    values: Labelled | undefined,
  ): void {
    if (values === undefined) return;
    const options = { name, help, labelNames: [label], registers: [registry] };
    const metric = type === 'gauge' ? new Gauge(options) : new Counter(options);
    for (const [text, value] of values) metric.inc({ [label]: text }, value);
  }

  const { now, limits, loops, last_sample, database_load: load, held, waiting } = readings;
  const { user, system } = process.cpuUsage();
  const withMax = limits.flatMap(({ name, max }) => (max === undefined ? [] : [[name, max] as const]));

  addLabelled('gauge', 'muster_build_info', 'The release.', 'version', [[readings.version, 1]]);
  add('gauge', 'process_start_time_seconds', 'When the process started.', Date.parse(readings.start_ts) / MS_PER_S);
  add('counter', 'process_cpu_seconds_total', 'Processor time.', (user + system) / US_PER_S);
  add('gauge', 'process_resident_memory_bytes', 'Resident memory.', readMemory());
  const delay_ms = last_sample?.delay_ms;
  const delay = delay_ms === undefined ? undefined : delay_ms / MS_PER_S;
  add('gauge', 'muster_event_loop_delay_seconds', 'The longest event loop delay within the last 15 seconds.', delay);
  const used = limits.map((one) => [one.name, one.used] as const);
  addLabelled('gauge', 'muster_limit_used', 'What is used of each limit of the process.', 'limit', used);
  addLabelled('gauge', 'muster_limit_max', 'The limits of the process.', 'limit', withMax);
  const failures = loops.map(({ name, failures: count }) => [name, count] as const);
  addLabelled('gauge', 'muster_loop_failures', 'Failed steps in a row, by loop.', 'loop', failures);

  const statuses = [...readings.requests].map(([status, count]) => [String(status), count] as const);
  addLabelled('counter', 'muster_requests_total', 'Answered requests, by status.', 'status', statuses);
  add(
    'counter',
    'muster_failed_requests_total',
    'Requests that failed because of a fault in Muster.',
    readings.failed_requests,
  );
  const seated = Object.entries(readings.seated);
  addLabelled('counter', 'muster_seated_total', 'Requests that got their seats, by kind.', 'kind', seated);
  const refused = [...readings.refused];
  addLabelled('counter', 'muster_refused_total', 'Refused requests for seats, by code.', 'code', refused);

  const servers = held && Object.entries(held.servers);
  addLabelled(
    'gauge',
    'muster_servers',
    'Game servers on the machines that this process holds, by state.',
    'state',
    servers,
  );
  add('gauge', 'muster_lobbies', 'Lobbies on the machines that this process holds.', held?.lobbies);
  add('gauge', 'muster_players', 'Players with a seat on the machines that this process holds.', held?.players);

  const finds = waiting?.reduce((sum, one) => sum + one.finds, 0);
  add('gauge', 'muster_queued_finds', 'Finds that wait for their turn, in all processes.', finds);
  const waits_ms = waiting?.map((one) => now.getTime() - one.waiting_since_ts.getTime());
  const longest_wait = waits_ms && Math.max(0, ...waits_ms) / MS_PER_S;
  add('gauge', 'muster_queue_longest_wait_seconds', 'The longest time that a queued find has waited.', longest_wait);
  add('gauge', 'muster_database_connections', 'Connections to PostgreSQL from all programs.', load?.connections);
  add('gauge', 'muster_database_connections_max', 'Connections that PostgreSQL allows.', load?.connections_max);
  const oldest = load && load.oldest_transaction_ms / MS_PER_S;
  add('gauge', 'muster_database_oldest_transaction_seconds', 'Age of the oldest open transaction.', oldest);
  return await registry.metrics();
}
