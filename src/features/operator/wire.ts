import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, Uuid } from '../../platform/http/shapes.ts';
import { type DescribedEvent, KEPT_LEVELS } from '../../platform/kept-events.ts';
import type { LoopState } from '../../platform/loop.ts';
import type {
  DatabaseLoad,
  DatabaseServerRow,
  OpenTransactionRow,
  ProgramRow,
  ReplicaRow,
  TableRow,
} from './tables.ts';

const Count = Type.Integer({ minimum: 0 });
const Bytes = Type.Integer({ minimum: 0, description: 'Bytes.' });

const ServiceProcess = Type.Object(
  {
    machine_id: Uuid,
    host: Type.String({ description: 'The name of its host.' }),
    version: Type.String({ description: 'The release.' }),
    start_ts: Timestamp,
  },
  { title: 'ServiceProcess', description: 'The process that answered: several may share one database.' },
);
export type ServiceProcess = Static<typeof ServiceProcess>;

const LIMITS = [
  'requests',
  'watchers',
  'polls',
  'sockets',
  'gateway_requests',
  'gateway_sockets',
  'relayed_connections',
  'transfers',
  'build_reads',
  'servers',
  'file_descriptors',
  'memory_bytes',
] as const;

const UsedLimit = Type.Object(
  {
    name: oneOf('LimitName', LIMITS, {
      description:
        'requests: in progress, to the service itself. watchers: long polls and subscriptions. polls: long polls that wait. sockets: WebSockets that watch. build_reads: builds and layers of images that pods and nodes read.',
    }),
    used: Count,
    max: Type.Optional(Type.Integer({ minimum: 0, description: 'Absent if it has no limit of its own.' })),
  },
  { title: 'UsedLimit' },
);
export type UsedLimit = Static<typeof UsedLimit>;

const ServiceLoop = Type.Object(
  {
    name: Type.String(),
    steps: Type.Integer({ minimum: 0, description: 'Steps since the start.' }),
    last_step_ts: Type.Optional(Timestamp),
    last_step_ms: Type.Optional(Type.Number({ minimum: 0, description: 'How long the last step took.' })),
    next_step_ts: Type.Optional(
      Type.String({ description: 'RFC 3339. Absent while a step runs. The loop may be woken sooner.' }),
    ),
    failures: Type.Integer({ minimum: 0, description: 'Failed steps in a row.' }),
    last_failure: Type.Optional(
      Type.Object({ at_ts: Timestamp, message: Type.String() }, { title: 'ServiceLoopFailure' }),
    ),
  },
  { title: 'ServiceLoop' },
);

export const ServiceAnswer = Type.Object({
  process: ServiceProcess,
  limits: Type.Array(UsedLimit, { description: 'What is used of each limit of the process.' }),
  loops: Type.Array(ServiceLoop, { description: 'Its background work.' }),
});

export function toServiceLoop(state: LoopState): Static<typeof ServiceLoop> {
  const { name, steps, begun_ts, took_ms, next_ts, failures, last_failure } = state;
  return {
    name,
    steps,
    ...(begun_ts && { last_step_ts: begun_ts.toISOString() }),
    ...(took_ms !== undefined && { last_step_ms: Math.round(took_ms * 10) / 10 }),
    ...(next_ts && { next_step_ts: next_ts.toISOString() }),
    failures,
    ...(last_failure && {
      last_failure: { at_ts: last_failure.at.toISOString(), message: last_failure.message },
    }),
  };
}

const DatabaseTable = Type.Object(
  {
    name: Type.String(),
    size_bytes: Type.Integer({ minimum: 0, description: 'Bytes, with its indexes.' }),
    rows: Type.Integer({ minimum: 0, description: 'About how many rows it has.' }),
    dead_rows: Type.Integer({ minimum: 0, description: 'Old versions of rows that are not removed yet.' }),
    vacuum_ts: Type.Optional(Type.String({ description: 'RFC 3339. When dead rows were removed last.' })),
  },
  { title: 'DatabaseTable' },
);

const DatabaseProgram = Type.Object(
  {
    name: Type.String({ description: 'As it names itself to PostgreSQL: Muster is "muster".' }),
    address: Type.Optional(Type.String({ description: 'Absent for connections by a socket of the machine.' })),
    connections: Count,
    active: Type.Integer({ minimum: 0, description: 'Those that run a statement.' }),
    in_transaction: Type.Integer({ minimum: 0, description: 'Those that wait inside a transaction.' }),
  },
  { title: 'DatabaseProgram' },
);

const DatabaseReplica = Type.Object(
  {
    name: Type.String(),
    address: Type.Optional(Type.String()),
    state: Type.String(),
    lag_bytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Bytes of the log that it has not replayed. Absent if Muster may not see it.',
      }),
    ),
  },
  { title: 'DatabaseReplica' },
);

const DatabaseState = Type.Object(
  {
    version: Type.String({ description: 'The release of PostgreSQL.' }),
    start_ts: Timestamp,
    size_bytes: Bytes,
    is_standby: Type.Boolean(),
    is_read_only: Type.Boolean({ description: 'Whether new transactions may not write.' }),
    connections: Count,
    connections_max: Count,
    oldest_transaction: Type.Optional(
      Type.Object(
        { begin_ts: Timestamp, program: Type.String(), state: Type.String() },
        { title: 'DatabaseTransaction', description: 'Absent if none is open.' },
      ),
    ),
    programs: Type.Array(DatabaseProgram, { description: 'What is connected, most connections first.' }),
    tables: Type.Array(DatabaseTable, { description: 'The largest tables.' }),
    replicas: Type.Array(DatabaseReplica, { description: 'The standbys that follow it.' }),
  },
  { title: 'DatabaseState' },
);
export const DatabaseAnswer = Type.Object({ database: DatabaseState });

/** The readings that describe a database. */
export interface DatabaseReadings {
  server: DatabaseServerRow;
  load: DatabaseLoad;
  oldest_transaction: OpenTransactionRow | undefined;
  programs: ProgramRow[];
  tables: TableRow[];
  replicas: ReplicaRow[];
}

export function toDatabaseState(read: DatabaseReadings): Static<typeof DatabaseState> {
  const { server, load, oldest_transaction: oldest, programs, tables, replicas } = read;
  return {
    version: server.version,
    start_ts: server.start_ts.toISOString(),
    size_bytes: server.size_bytes,
    is_standby: server.is_standby,
    is_read_only: server.is_read_only,
    connections: load.connections,
    connections_max: load.connections_max,
    ...(oldest && {
      oldest_transaction: { begin_ts: oldest.begin_ts.toISOString(), program: oldest.program, state: oldest.state },
    }),
    programs: programs.map(({ address, ...program }) => ({ ...program, ...(address !== null && { address }) })),
    tables: tables.map(({ vacuum_ts, ...table }) => ({
      ...table,
      ...(vacuum_ts !== null && { vacuum_ts: vacuum_ts.toISOString() }),
    })),
    replicas: replicas.map(({ address, lag_bytes, ...replica }) => ({
      ...replica,
      ...(address !== null && { address }),
      ...(lag_bytes !== null && { lag_bytes }),
    })),
  };
}

const QueueOfNamespace = Type.Object(
  {
    game_id: Uuid,
    game_name_id: Type.String(),
    namespace_id: Uuid,
    namespace_name_id: Type.String(),
    finds: Count,
    seats: Type.Integer({ minimum: 0, description: 'The seats that these finds want.' }),
    waiting_since_ts: Type.String({ description: 'RFC 3339. When the find that has waited longest began to wait.' }),
  },
  { title: 'QueueOfNamespace' },
);
export type QueueOfNamespace = Static<typeof QueueOfNamespace>;

export const QueueAnswer = Type.Object({
  finds: Type.Integer({ minimum: 0, description: 'Finds that wait in all namespaces.' }),
  namespaces: Type.Array(QueueOfNamespace, { description: 'The longest queues.' }),
});

const LogEvent = Type.Object(
  {
    number: Type.Integer({ minimum: 0, description: 'Rises by one with each event that is kept.' }),
    ts: Timestamp,
    level: Type.String(),
    event: Type.String(),
    details: Type.Record(Type.String(), Type.Unknown(), {
      description: 'As in the log, without secrets; of long ones, only `cut`: the beginning of their JSON.',
    }),
  },
  { title: 'LogEvent' },
);

export const LogQuery = Type.Object({
  level: Type.Optional(
    oneOf('LogEventLevel', KEPT_LEVELS, { description: 'Only events of this level or a worse one. Default: info.' }),
  ),
});

export const LogAnswer = Type.Object({
  process: ServiceProcess,
  events: Type.Array(LogEvent, { description: 'The latest ones, oldest first.' }),
});

export function toLogEvent({ number, at, level, event, details }: DescribedEvent): Static<typeof LogEvent> {
  return { number, ts: at.toISOString(), level, event, details };
}

const ServiceSample = Type.Object(
  {
    ts: Timestamp,
    span_ms: Type.Integer({ minimum: 1, description: 'The time since the previous sample, or since the start.' }),
    cpu: Type.Number({
      minimum: 0,
      description: 'Processor time since the previous sample, in thousandths of a core.',
    }),
    memory_bytes: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Absent if the process had no free descriptor to read it.' }),
    ),
    delay_ms: Type.Number({ minimum: 0, description: 'The longest event loop delay since the previous sample.' }),
    requests: Type.Integer({ minimum: 0, description: 'Answered since the previous sample.' }),
    failed_requests: Type.Integer({ minimum: 0, description: 'Of these, those that failed by a fault of Muster.' }),
    sockets: Count,
    watchers: Count,
    database_connections: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Of all programs. Absent if PostgreSQL did not answer.' }),
    ),
  },
  { title: 'ServiceSample' },
);
export type ServiceSample = Static<typeof ServiceSample>;

export const SamplesAnswer = Type.Object({
  process: ServiceProcess,
  step_ms: Type.Integer({ description: 'The time between two samples.' }),
  samples: Type.Array(ServiceSample, {
    description: 'Of the last hour, or since the start of the process if that was later. Oldest first.',
  }),
});
