import { type Static, Type } from '@sinclair/typebox';
import { Moment, readMoment } from '../../platform/http/moments.ts';
import { Empty, oneOf, Timestamp, U64, Uuid } from '../../platform/http/shapes.ts';
import { omitUndefined } from '../../platform/omit-undefined.ts';
import { MIB } from '../../platform/units.ts';
import type { AddressOf } from '../port-names.ts';
import { NetworkMode, PortRange, Protocol } from '../ports.ts';
import { Tags, TagsQuery } from '../tags.ts';
import { describeEnd, hasCrashed } from './end-description.ts';
import type { LogQuery } from './logs/log-reading.ts';
import type { SearchedLines } from './logs/log-search.ts';
import type { LogLines } from './logs/logs.ts';
import {
  LOG_STREAMS,
  type LogStream as LogStreamName,
  type ServerPort,
  type ServerRow,
  startOfMinute,
} from './tables.ts';
import type { ServerUsage } from './usage/usage-reading.ts';

const SECONDS_PER_MINUTE = 60;
const PORTS_MAX = 8;
const ARGUMENTS_MAX = 64;
const VARIABLES_MAX = 64;
/** Lines that the answer about a server's end has, and the characters of each. */
export const LAST_LINES_MAX = 20;
const LAST_LINE_CHARACTERS_MAX = 1_000;

const Routing = Type.Object({ game_guard: Type.Optional(Empty), host: Type.Optional(Empty) }, { title: 'PortRouting' });
const PORT_LIMITS = { minimum: 1, maximum: 65_535 };
const PortNumber = Type.Integer(PORT_LIMITS);
const Resources = Type.Object(
  {
    cpu: Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'Thousandths of a core.' }),
    memory: Type.Integer({ minimum: 1, maximum: 16_777_216, description: 'MiB (1,048,576 bytes).' }),
  },
  { title: 'Resources' },
);
/** At most two hours, the limit of the reference API. */
const KillTimeout = Type.Integer({ minimum: 0, maximum: 7_199_999, description: 'Milliseconds.' });
const RestartPolicy = oneOf('RestartPolicy', ['never', 'on_crash'], {
  description:
    'Whether another server replaces it. on_crash: after a crash or the loss of its machine. By default never.',
});
/** Default maximum of restarts in a row. Their pauses add up to about five minutes. */
export const RESTARTS_DEFAULT_MAX = 10;
const RestartsMax = Type.Integer({
  minimum: 1,
  maximum: 1_000,
  description: `Maximum of restarts in a row, ${RESTARTS_DEFAULT_MAX} by default. The count starts again after a server has run for 10 minutes.`,
});

export const CreateServerBody = Type.Object({
  datacenter: Uuid,
  tags: Tags,
  runtime: Type.Object(
    {
      build: Uuid,
      arguments: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: '^[^\\0]*$' }), { maxItems: ARGUMENTS_MAX }),
      ),
      environment: Type.Optional(
        Type.Record(
          Type.String({ pattern: '^(?!(SERVICE|RIVET|PORT)_|BUN_BE_BUN$|MUSTER_)[A-Za-z_][A-Za-z0-9_]{0,255}$' }),
          Type.String({ maxLength: 1_024, pattern: '^[^\\0]*$' }),
          { maxProperties: VARIABLES_MAX, additionalProperties: false },
        ),
      ),
    },
    { title: 'CreateServerRuntime' },
  ),
  network: Type.Object(
    {
      mode: Type.Optional(NetworkMode),
      ports: Type.Record(
        Type.String({ pattern: '^[A-Za-z0-9]([A-Za-z0-9_-]{0,14}[A-Za-z0-9])?$' }),
        Type.Object(
          {
            protocol: Protocol,
            internal_port: Type.Optional(
              Type.Integer({
                ...PORT_LIMITS,
                description:
                  'The port that the program asks for. A server in a container listens on it. Any other server shares the ports of its machine, so it must listen on the number in the variable PORT_<label>, which is the `internal_port` of answers.',
              }),
            ),
            routing: Type.Optional(Routing),
          },
          { title: 'CreateServerPort' },
        ),
        { maxProperties: PORTS_MAX, additionalProperties: false },
      ),
    },
    { title: 'CreateServerNetwork' },
  ),
  resources: Resources,
  lifecycle: Type.Optional(
    Type.Object(
      {
        kill_timeout: Type.Optional(KillTimeout),
        restart: Type.Optional(RestartPolicy),
        restarts_max: Type.Optional(RestartsMax),
      },
      { title: 'CreateServerLifecycle' },
    ),
  ),
});
export type CreateServer = Static<typeof CreateServerBody>;

/** Specification: Server. */
const Server = Type.Object(
  {
    id: Uuid,
    environment: Uuid,
    datacenter: Uuid,
    created_at: U64,
    started_at: Type.Optional(U64),
    destroyed_at: Type.Optional(U64),
    tags: Type.Record(Type.String(), Type.String()),
    lifecycle: Type.Object(
      {
        kill_timeout: Type.Optional(U64),
        restart: Type.Optional(Type.Literal('on_crash', { description: 'Absent if it is never restarted.' })),
        restarts_max: Type.Optional(RestartsMax),
      },
      { title: 'ServerLifecycle' },
    ),
    restart_of: Type.Optional(Type.String({ format: 'uuid', description: 'The server that it restarts.' })),
    restarted_as: Type.Optional(Type.String({ format: 'uuid', description: 'The server that restarts it.' })),
    restart_count: Type.Optional(Type.Integer({ minimum: 1, description: 'Which restart in a row it is.' })),
    start_after: Type.Optional(
      Type.Integer({ minimum: 0, description: 'The end of the pause before a restart, in milliseconds since 1970.' }),
    ),
    network: Type.Object(
      {
        mode: Type.Optional(NetworkMode),
        ports: Type.Record(
          Type.String(),
          Type.Object(
            {
              protocol: Protocol,
              internal_port: Type.Optional(
                Type.Integer({
                  ...PORT_LIMITS,
                  description:
                    'The port in PORT_<label>, on which the program must listen. Present once it has started.',
                }),
              ),
              public_hostname: Type.Optional(Type.String()),
              public_port: Type.Optional(PortNumber),
              port_range: Type.Optional(PortRange),
              routing: Routing,
            },
            { title: 'ServerPort' },
          ),
        ),
      },
      { title: 'ServerNetwork' },
    ),
    resources: Resources,
    runtime: Type.Object(
      {
        build: Uuid,
        arguments: Type.Optional(Type.Array(Type.String())),
        environment: Type.Optional(Type.Record(Type.String(), Type.String())),
      },
      { title: 'ServerRuntime' },
    ),
  },
  { title: 'Server' },
);
export const ServerAnswer = Type.Object({ server: Server });
export const ServersAnswer = Type.Object({ servers: Type.Array(Server) });

export const ListServersQuery = Type.Object({
  ...TagsQuery.properties,
  include_destroyed: Type.Optional(Type.Boolean()),
  cursor: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'The last id of the previous page. A page has at most 8 MiB, so it may be short although more servers follow: go on until a page is empty.',
    }),
  ),
});

export const LogStream = oneOf('LogStream', LOG_STREAMS);
export const ServerEndAnswer = Type.Object({
  end: Type.Optional(
    Type.Object(
      {
        has_crashed: Type.Boolean({
          description: 'Whether it failed, or ended with an error although its end was not requested.',
        }),
        summary: Type.String({ description: 'How it ended, in words.' }),
        exit_code: Type.Optional(Type.Integer()),
        exit_signal: Type.Optional(Type.String()),
        last_lines: Type.Array(
          Type.Object({ stream: LogStream, ts: Timestamp, text: Type.String() }, { title: 'LastLine' }),
          {
            description: `The last ${LAST_LINES_MAX} lines of its log, by time; half of them of each stream, if both have as many.`,
          },
        ),
      },
      { title: 'ServerEnd', description: 'Absent until the server has ended.' },
    ),
  ),
});

export const DestroyServerQuery = Type.Object({ override_kill_timeout: Type.Optional(KillTimeout) });

const SearchText = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: '^[^\\0\\n]*$',
  description: 'Only lines that contain this text.',
});
const LineNumber = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'The number of a line in its stream, from 0.',
});
export const LogsQuery = Type.Object({
  stream: LogStream,
  query_start_ts: Type.Optional(Moment),
  first_line: Type.Optional(LineNumber),
  search_text: Type.Optional(SearchText),
  search_case_sensitive: Type.Optional(
    Type.Boolean({ description: 'Whether upper and lower case of `search_text` must match; by default false.' }),
  ),
});
export const LogsAnswer = Type.Object({
  lines: Type.Array(Type.String({ description: 'The bytes of a line, in base64.' })),
  timestamps: Type.Array(Timestamp),
});
const TextLine = Type.Object(
  {
    number: LineNumber,
    ts: Timestamp,
    text: Type.String({ description: 'Invalid UTF-8 is replaced by U+FFFD.' }),
  },
  { title: 'LogLine' },
);
export const LogTextAnswer = Type.Object({ lines: Type.Array(TextLine) });

export const LogSearchQuery = Type.Object({
  stream: LogStream,
  search_text: SearchText,
  search_case_sensitive: LogsQuery.properties.search_case_sensitive,
  before_line: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Searches only before this line: `from_line` of the last answer.',
    }),
  ),
});
export const LogSearchAnswer = Type.Object({
  lines: Type.Array(TextLine),
  from_line: Type.Integer({ description: 'The first line that was searched. With 0, nothing is left before it.' }),
  end_line: Type.Integer({ description: 'One more than the number of the last line of the stream.' }),
});

const IF_COUNTED = 'Only for a server whose network traffic is counted.';
export const UsageAnswer = Type.Object({
  resources: Resources,
  samples: Type.Array(
    Type.Object(
      {
        ts: Timestamp,
        cpu: Type.Integer({ minimum: 0, description: 'Thousandths of a core, on average over the minute from `ts`.' }),
        memory: Type.Optional(
          Type.Number({ minimum: 0, description: 'MiB (1,048,576 bytes): the most in this minute.' }),
        ),
        received_bytes: Type.Optional(Type.Integer({ minimum: 0, description: IF_COUNTED })),
        sent_bytes: Type.Optional(Type.Integer({ minimum: 0, description: IF_COUNTED })),
      },
      { title: 'UsageSample' },
    ),
  ),
});

/** Returns the usage of a server in the units of its resources, oldest first. */
export function toUsage({ samples, cpu, memory }: ServerUsage): Static<typeof UsageAnswer> {
  return {
    resources: { cpu, memory },
    samples: samples.map(({ minute, cpu_ms, memory_bytes, received_bytes, sent_bytes }) => ({
      ts: startOfMinute(minute).toISOString(),
      cpu: Math.round(cpu_ms / SECONDS_PER_MINUTE),
      ...(memory_bytes !== null && { memory: Math.round((memory_bytes / MIB) * 10) / 10 }),
      ...(received_bytes !== null && { received_bytes }),
      ...(sent_bytes !== null && { sent_bytes }),
    })),
  };
}

/** Returns the lines that a request wants. */
export function toLogQuery(query: Static<typeof LogsQuery>): Omit<LogQuery, 'server_id'> {
  const { stream, first_line, search_text, search_case_sensitive = false } = query;
  return {
    stream,
    first_line,
    start_ms: readMoment('query_start_ts', query.query_start_ts),
    search: search_text === undefined ? undefined : { text: search_text, is_case_sensitive: search_case_sensitive },
  };
}

/** Returns lines in the form of the specification, oldest first. */
export function toLog(lines: LogLines['lines']): Static<typeof LogsAnswer> {
  return {
    lines: lines.map(({ bytes }) => Buffer.from(bytes).toString('base64')),
    timestamps: lines.map(({ ts }) => ts.toISOString()),
  };
}

/** Returns lines as text for people. */
export function toLogText(lines: LogLines['lines']): Static<typeof LogTextAnswer> {
  return { lines: lines.map(toTextLine) };
}

export function toLogSearch({ lines, ...range }: SearchedLines): Static<typeof LogSearchAnswer> {
  return { lines: lines.map(toTextLine), ...range };
}

function toTextLine({ number, bytes, ts }: LogLines['lines'][number]): Static<typeof TextLine> {
  return { number, ts: ts.toISOString(), text: Buffer.from(bytes).toString() };
}

/** Returns how a server ended, with the last lines of its streams. */
export function toServerEnd({ row, lines }: ServerWithEnd): Static<typeof ServerEndAnswer> {
  if (row.ended_at === null) return {};
  return {
    end: {
      has_crashed: hasCrashed(row),
      summary: `The server ${describeEnd(row)}.`,
      ...(row.exit_code === null ? {} : { exit_code: row.exit_code }),
      ...(row.exit_signal === null ? {} : { exit_signal: row.exit_signal }),
      last_lines: lines.map(({ stream, bytes, ts }) => ({
        stream,
        ts: ts.toISOString(),
        text: Buffer.from(bytes).toString().slice(0, LAST_LINE_CHARACTERS_MAX),
      })),
    },
  };
}

/** A server, and the last lines of its log if it has ended. */
export interface ServerWithEnd {
  row: ServerRow;
  /** By time. */
  lines: { stream: LogStreamName; bytes: Uint8Array; ts: Date }[];
}

/** Returns a server as its developer sees it. */
export function toServer(row: ServerRow, addressOf: AddressOf): Static<typeof Server> {
  return {
    id: row.server_id,
    environment: row.namespace_id,
    datacenter: row.datacenter_id,
    created_at: row.created_at.getTime(),
    ...(row.started_at ? { started_at: row.started_at.getTime() } : {}),
    ...(row.destroyed_at ? { destroyed_at: row.destroyed_at.getTime() } : {}),
    tags: row.tags,
    lifecycle: {
      kill_timeout: row.kill_timeout_ms,
      ...(row.restarts_max !== null && { restart: 'on_crash' as const, restarts_max: row.restarts_max }),
    },
    ...(row.restart_of !== null && { restart_of: row.restart_of }),
    ...(row.restarted_as !== null && { restarted_as: row.restarted_as }),
    ...(row.restart_count > 0 && { restart_count: row.restart_count }),
    ...(row.start_after !== null && { start_after: row.start_after.getTime() }),
    network: {
      mode: row.network_mode,
      ports: Object.fromEntries(
        Object.entries(row.ports).map(([label, port]) => [
          label,
          toPort(port, { has_started: row.started_at !== null, addressOf }),
        ]),
      ),
    },
    resources: { cpu: row.cpu, memory: row.memory },
    runtime: { build: row.build_id, arguments: row.arguments, environment: row.environment },
  };
}

/** Returns a port, with its address once the server has started. Before that, `internal_port` is only a wish. */
function toPort(port: ServerPort, { has_started, addressOf }: { has_started: boolean; addressOf: AddressOf }) {
  const { protocol, routing, internal_port, port_range } = port;
  const address = addressOf(port);
  const { hostname: public_hostname = port.public_hostname, port: public_port = port.public_port } = address ?? {};
  return {
    protocol,
    ...(has_started && omitUndefined({ internal_port, public_hostname, public_port })),
    ...(port_range && { port_range }),
    routing: routing === 'host' ? { host: {} } : { game_guard: {} },
  };
}
