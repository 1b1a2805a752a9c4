import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { assert } from '../../platform/errors.ts';
import type { HealthCheck } from '../../platform/http/health.ts';
import type { DescribedEvent, KeptEvents, KeptLevel } from '../../platform/kept-events.ts';
import { type LoopState, listLoops } from '../../platform/loop.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Certificates } from '../certificates/certificates.ts';
import { type Held, writeMetrics } from './metrics.ts';
import { createOwnLimits } from './process-limits.ts';
import { warnOfCertificates, warnOfConnections, warnOfLimits, warnOfLoops, warnOfTransaction } from './rules.ts';
import { createSamples } from './samples.ts';
import * as store from './store.ts';
import type { DatabaseReadings, QueueOfNamespace, ServiceProcess, ServiceSample, UsedLimit } from './wire.ts';

export type { UsedLimit } from './wire.ts';

const EVENTS_MAX = 200;
const QUEUES_MAX = 20;

/** Finds that wait in a namespace. */
interface QueueLength {
  namespace_id: string;
  finds: number;
  seats: number;
  waiting_since_ts: Date;
}

/** The names of a namespace and its game. */
type NamespaceNames = Pick<QueueOfNamespace, 'game_id' | 'game_name_id' | 'namespace_name_id'>;

export interface OperatorDependencies {
  database: Pick<Database, 'queries'>;
  clock: Clock;
  events: KeptEvents;
  /** This process. */
  own: Omit<ServiceProcess, 'start_ts'>;
  certificates: Pick<Certificates, 'current'>;
  /** Throws IDENTITY_NOT_ADMIN unless the caller is an administrator. */
  requireAdministrator(caller: CallerOf<'identity'>): Promise<void>;
  /** Returns what is used of the limits of features. */
  readLimits(): UsedLimit[];
  /** Returns how many servers run on the machines that this process holds. Their limit is `servers_max`. */
  countServers(): Promise<number>;
  servers_max: number;
  /** Returns the finds that wait, by namespace, longest queue first. */
  countWaiting(): Promise<QueueLength[]>;
  /** Returns what this process has counted of requests for seats since its start. */
  readSeatTotals(): { seated: Readonly<Record<string, number>>; refused: ReadonlyMap<string, number> };
  /** Returns the servers by status, the lobbies and the players of the machines that this process holds. */
  countHeld(): Promise<Held>;
  /** Returns the names of a namespace; undefined if it is gone. */
  namesOf(namespace_id: string): Promise<NamespaceNames | undefined>;
}

/**
 * The use cases of the operator. All but `warnings`, `addLimits` and `startWork` throw IDENTITY_NOT_ADMIN;
 * `readMetrics` also accepts a token for metrics.
 */
export type Operator = ReturnType<typeof createOperator>;

type Administrator = CallerOf<'identity'>;

/** Creates what an administrator sees of the service: this process, its database, the queue and its log. */
export function createOperator(dependencies: OperatorDependencies) {
  const { database, clock, events, own, certificates, requireAdministrator } = dependencies;
  const { countServers, servers_max, countWaiting, readSeatTotals, countHeld, namesOf } = dependencies;
  const { queries } = database;
  const self: ServiceProcess = { ...own, start_ts: clock.now().toISOString() };
  const sources = [createOwnLimits(), dependencies.readLimits];
  const readLimits = () => sources.flatMap((read) => read());
  const samples = createSamples({ database, clock, events, readLimits });

  /** Returns what is used of all limits. While the database does not answer, leaves out the limit of servers. */
  async function readAllLimits(): Promise<UsedLimit[]> {
    const used = await countServers().catch(() => undefined);
    const limits = readLimits();
    return used === undefined ? limits : [...limits, { name: 'servers', used, max: servers_max }];
  }

  async function nameQueue({ namespace_id, finds, seats, waiting_since_ts }: QueueLength): Promise<QueueOfNamespace[]> {
    const names = await namesOf(namespace_id);
    return names ? [{ namespace_id, finds, seats, waiting_since_ts: waiting_since_ts.toISOString(), ...names }] : [];
  }

  const warnings: HealthCheck[] = [
    async () => warnOfLoops(listLoops(events)),
    async () => warnOfLimits(await readAllLimits()),
    async () => warnOfConnections(samples.lastLoad()),
    async () => warnOfTransaction(samples.lastLoad()),
    async () => warnOfCertificates(certificates.current(), clock.now()),
  ];

  return {
    /** Problems that an operator should fix although the service works. */
    warnings,
    /** Adds limits of parts that are opened later. */
    addLimits(read: () => UsedLimit[]): void {
      sources.push(read);
    },
    startWork: samples.startTaking,
    /** Returns this process, what it uses of its limits, and its background work. */
    async getService(
      caller: Administrator,
    ): Promise<{ process: ServiceProcess; limits: UsedLimit[]; loops: LoopState[] }> {
      await requireAdministrator(caller);
      return { process: self, limits: await readAllLimits(), loops: listLoops(events) };
    },
    /** Returns the state of the database, which all processes share. */
    async getDatabase(caller: Administrator): Promise<DatabaseReadings> {
      await requireAdministrator(caller);
      const server = await store.selectServer(queries);
      assert(server, 'PostgreSQL describes itself');
      return {
        server,
        load: await store.selectLoad(queries),
        oldest_transaction: await store.selectOldestTransaction(queries),
        programs: await store.selectPrograms(queries),
        tables: await store.selectLargestTables(queries),
        replicas: await store.selectReplicas(queries),
      };
    },
    /** Returns how many finds wait for their turn in all namespaces, and the longest queues. */
    async getQueue(caller: Administrator): Promise<{ finds: number; namespaces: QueueOfNamespace[] }> {
      await requireAdministrator(caller);
      const waiting = await countWaiting();
      return {
        finds: waiting.reduce((sum, { finds }) => sum + finds, 0),
        namespaces: (await Promise.all(waiting.slice(0, QUEUES_MAX).map(nameQueue))).flat(),
      };
    },
    /** Returns what a system for metrics reads of this process, as text. */
    async readMetrics(caller: Administrator | CallerOf<'metrics'>): Promise<string> {
      if (caller.kind === 'identity') await requireAdministrator(caller);
      // A count that fails leaves the other metrics.
      const [held, waiting, limits] = await Promise.all([
        countHeld().catch(() => undefined),
        countWaiting().catch(() => undefined),
        readAllLimits(),
      ]);
      return await writeMetrics({
        ...readSeatTotals(),
        held,
        waiting,
        limits,
        now: clock.now(),
        version: self.version,
        start_ts: self.start_ts,
        loops: listLoops(events),
        last_sample: samples.list().at(-1),
        database_load: samples.lastLoad(),
        requests: events.countStatuses(),
        failed_requests: events.count('request_failed'),
      });
    },
    /** Returns the latest events of this process's log, of a level or a worse one. */
    async listEvents(
      caller: Administrator,
      level: KeptLevel,
    ): Promise<{ process: ServiceProcess; events: DescribedEvent[] }> {
      await requireAdministrator(caller);
      return { process: self, events: events.list(level, EVENTS_MAX) };
    },
    /** Returns what this process used and did in each step of the last hour. */
    async listSamples(caller: Administrator): Promise<{ process: ServiceProcess; samples: readonly ServiceSample[] }> {
      await requireAdministrator(caller);
      return { process: self, samples: samples.list() };
    },
  };
}
