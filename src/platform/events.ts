import pino from 'pino';
import pretty from 'pino-pretty';
import { openStderr } from './stderr.ts';

/** The events for operators. The log is written from them. */
export type ServiceEvent =
  | { event: 'service_started'; version: string; url: string; started_in_ms: number }
  | { event: 'service_stopping'; reason: string }
  | { event: 'servers_stop_failed'; cause: unknown }
  | { event: 'service_stopped_late'; after_ms: number }
  | { event: 'unexpected_failure'; ray_id?: string; cause: unknown }
  | { event: 'database_awaited'; reason: string; for_ms: number }
  | { event: 'storage_awaited'; reason: string; for_ms: number }
  | { event: 'log_lines_dropped'; count: number }
  | { event: 'database_started'; process_id: number }
  | { event: 'database_recovering'; for_ms: number; last_line: string }
  | { event: 'database_lost'; cause: unknown }
  | { event: 'feed_reconnected' }
  | { event: 'disk_space_low' | 'disk_space_regained'; free_bytes: number; reserve_bytes: number }
  | {
      event: 'storage_differs';
      location: string;
      mark: string;
      location_of_database: string;
      mark_of_database: string;
      advice: string;
    }
  | { event: 'storage_not_compared'; location: string; cause: unknown }
  | { event: 'token_not_written'; path: string; cause: unknown }
  | { event: 'limits_store_lost'; store: string; cause: unknown }
  | { event: 'limits_store_found'; store: string }
  | { event: 'proxy_not_trusted'; address: string }
  | { event: 'https_opened' | 'https_renewed'; port: number; names: string[] }
  | { event: 'https_not_renewed'; port: number; cause: unknown }
  | { event: 'servers_not_covered'; names: string; advice: string }
  | { event: 'local_authority_used'; file: string; advice: string }
  | { event: 'certificate_not_read'; reason: string }
  | { event: 'certificate_issued'; host: string; expires_at: string; renewal_at: string }
  | { event: 'demo_not_created'; cause: unknown }
  | { event: 'certificate_not_issued'; host: string; reason: string; failures: number; retry_in_ms: number }
  | {
      event: 'connections_closed';
      above_limit: number;
      for_reserve: number;
      networks: string[];
      descriptors_max: number;
      per_address_max: number;
    }
  | { event: 'request_served'; ray_id: string; method: string; route: string; status: number; duration_ms: number }
  | { event: 'socket_closed'; duration_ms: number }
  | { event: 'request_failed'; ray_id: string; method: string; route: string; cause: unknown }
  /** `watched`: the name of a view, or the path of a subscription. */
  | { event: 'watch_failed'; watched: string; cause: unknown }
  | { event: 'loop_failed'; loop: string; failures: number; cause: unknown }
  | { event: 'loop_corrected'; loop: string; count: number }
  | { event: 'beat_failed'; cause: unknown }
  | { event: 'lease_failed'; step: 'acquire' | 'release' | 'stop'; cause: unknown }
  | { event: 'audit_entry_not_completed'; entry_id: string; cause: unknown }
  | { event: 'machine_awaited' | 'machine_lost'; node_id: string; host: string; for_ms: number; servers?: number }
  | { event: 'machine_returned'; node_id: string }
  | { event: 'cluster_taken'; node_id: string; cluster: string }
  | { event: 'cluster_lost'; node_id: string; cluster: string; why: 'taken_over' | 'expired' }
  | { event: 'machine_replaced'; node_id: string; host: string }
  | { event: 'server_step_failed'; server_id: string; step: string; cause: unknown }
  | { event: 'runtime_failed'; step: string; kinds: string[]; cause: unknown }
  | { event: 'server_started'; server_id: string; identity: object; host: string; ports: number[]; isolation: string }
  | { event: 'gateway_draining'; connections: number; within_ms: number }
  | { event: 'gateway_drained'; connections: number }
  | { event: 'relays_not_opened'; server_id: string; ports: number[]; cause: unknown }
  | { event: 'servers_not_placed'; cause: unknown }
  | { event: 'server_waits'; server_id: string; namespace_id: string; reason: string }
  | { event: 'server_adopted'; server_id: string; identity: object; host: string; ports: number[]; isolation: string }
  | {
      event: 'server_ended';
      server_id: string;
      exit_code: number | null;
      exit_signal: string | null;
      failure: string | null;
      /** How it ended, if it should not have. */
      crash?: string;
      /** The id of the server that restarts it. */
      restarted_as?: string;
    }
  | { event: 'server_took_port'; server_id: string; port: number }
  | { event: 'container_engine_unavailable'; engine: string; reason: string }
  | { event: 'cluster_unavailable'; cause: unknown }
  | { event: 'server_leftover_removed'; server_id: string }
  | { event: 'unused_build_removed'; build_id: string; unused_for_ms: number }
  | { event: 'lobby_created'; lobby_id: string; namespace_id: string; game_mode: string; region: string }
  | { event: 'lobby_not_kept_warm'; namespace_id: string; game_mode?: string; region?: string; cause: unknown }
  | { event: 'lobby_ready'; lobby_id: string; after_ms: number }
  | { event: 'lobby_not_ready'; lobby_id: string; server_id: string; hint: string; last_lines: string[] }
  | { event: 'lobby_stopped'; lobby_id: string; reason: string }
  | { event: 'lobby_not_stopped'; lobby_id: string; reason: string; cause: unknown }
  | { event: 'lobbies_step_failed'; step: LobbiesStep; namespace_id: string; cause: unknown }
  | { event: 'seats_expired'; reason: string; count: number }
  | { event: 'captcha_not_checked'; provider: string; namespace_id: string; reasons: string[]; cause?: unknown }
  | { event: 'outbound_target_paused'; account: string; origin: string }
  | { event: 'upload_abandoned'; upload_id: string }
  | { event: 'superseded_parts_not_removed'; upload_id: string; cause: unknown }
  | { event: 'file_not_compressed'; upload_id: string; cause: unknown }
  | { event: 'identity_forgotten'; identity_id: string };

/** A step of the background work on the lobbies of a namespace: removes seats, ends empty lobbies, hints at missing calls. */
export type LobbiesStep = 'seats' | 'idle' | 'hints';

export type EventName = ServiceEvent['event'];

export interface Events {
  emit(event: ServiceEvent): void;
}

/** A log of events. */
export interface Log extends Events {
  /** Waits until the lines so far are written. A process that ends before may lose the last ones. */
  flush(): Promise<void>;
}

export type LogLevel = 'off' | 'error' | 'warn' | 'info' | 'debug';
export type EventLevel = Exclude<LogLevel, 'off'>;

export const LEVELS: Record<EventName, EventLevel> = {
  service_started: 'info',
  service_stopping: 'info',
  servers_stop_failed: 'error',
  service_stopped_late: 'error',
  unexpected_failure: 'error',
  database_awaited: 'warn',
  storage_awaited: 'warn',
  log_lines_dropped: 'error',
  database_started: 'debug',
  database_recovering: 'warn',
  database_lost: 'error',
  feed_reconnected: 'warn',
  disk_space_low: 'error',
  disk_space_regained: 'warn',
  storage_differs: 'error',
  storage_not_compared: 'warn',
  token_not_written: 'warn',
  limits_store_lost: 'error',
  limits_store_found: 'warn',
  proxy_not_trusted: 'warn',
  https_opened: 'info',
  https_renewed: 'info',
  https_not_renewed: 'error',
  servers_not_covered: 'warn',
  local_authority_used: 'info',
  certificate_not_read: 'error',
  certificate_issued: 'info',
  certificate_not_issued: 'error',
  demo_not_created: 'error',
  connections_closed: 'warn',
  request_served: 'debug',
  socket_closed: 'debug',
  request_failed: 'error',
  watch_failed: 'error',
  loop_failed: 'error',
  loop_corrected: 'debug',
  beat_failed: 'warn',
  lease_failed: 'warn',
  audit_entry_not_completed: 'warn',
  machine_awaited: 'warn',
  machine_lost: 'error',
  machine_returned: 'warn',
  cluster_taken: 'info',
  cluster_lost: 'warn',
  machine_replaced: 'error',
  server_step_failed: 'error',
  runtime_failed: 'error',
  server_started: 'info',
  gateway_draining: 'info',
  gateway_drained: 'info',
  relays_not_opened: 'error',
  servers_not_placed: 'error',
  server_waits: 'warn',
  server_adopted: 'info',
  server_ended: 'info',
  server_took_port: 'warn',
  container_engine_unavailable: 'error',
  cluster_unavailable: 'error',
  server_leftover_removed: 'warn',
  unused_build_removed: 'info',
  lobby_created: 'info',
  lobby_not_kept_warm: 'warn',
  lobby_ready: 'info',
  lobby_not_ready: 'warn',
  lobby_stopped: 'info',
  lobby_not_stopped: 'error',
  lobbies_step_failed: 'error',
  seats_expired: 'info',
  captcha_not_checked: 'warn',
  outbound_target_paused: 'warn',
  upload_abandoned: 'info',
  superseded_parts_not_removed: 'warn',
  file_not_compressed: 'warn',
  identity_forgotten: 'info',
};

/** Writes events to stderr: as readable lines if it is a terminal, else as JSON, one object per line. */
export function createLog(level: LogLevel): Log {
  if (level === 'off') return { emit() {}, flush: async () => {} };
  const stderr = openStderr({ onDropped: (count) => events.emit({ event: 'log_lines_dropped', count }) });
  const destination = process.stderr.isTTY
    ? pretty({ destination: stderr.stream, messageKey: 'event', singleLine: true, translateTime: 'HH:MM:ss' })
    : stderr.stream;
  const log = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (name) => ({ level: name }) },
    },
    destination,
  );
  const events: Log = {
    flush: stderr.flush,
    emit(event) {
      const level = LEVELS[event.event];
      // Most debug events come with each request, so this must be fast.
      if (!log.isLevelEnabled(level)) return;
      log[level](describeMembers(event), event.event);
    },
  };
  return events;
}

/** Maximum length of a message, or of a stack without its message, in a log line. */
const TEXT_MAX = 10_000;
const CAUSES_MAX = 8;

/** Maximum length of a line that a game server wrote. */
const LINE_MAX = 300;

/** Returns the members of an event as plain data, without the secrets that their texts may quote. */
export function describeMembers({ event: _, ...members }: ServiceEvent): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, describeMember(name, value)]));
}

function describeMember(name: string, value: unknown): unknown {
  if (name === 'cause') return describeCause(value, CAUSES_MAX);
  if (name === 'last_lines') return (value as string[]).map((line) => redact(line.slice(0, LINE_MAX)));
  return redactTexts(value);
}

function redactTexts(value: unknown): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map(redactTexts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redactTexts(member)]));
}

/** Returns an error and its causes as plain data, without the secrets that they may quote. */
function describeCause(cause: unknown, depth_max: number): unknown {
  if (!(cause instanceof Error)) return redact(String(cause));
  const below =
    cause.cause === undefined || depth_max === 0 ? {} : { cause: describeCause(cause.cause, depth_max - 1) };
  return { name: cause.name, message: redact(cause.message), stack: describeStack(cause), ...below };
}

/** Returns the stack without secrets. Finds the message by its text, because it may look like the frames that follow it. */
function describeStack({ message, stack = '' }: Error): string {
  const start = stack.indexOf(message);
  if (start < 0) return redact(stack);
  return `${stack.slice(0, start)}${redact(message)}${stack.slice(start + message.length)}`;
}

/**
 * Removes from a text everything that looks like a token, the signature of an address, a password (of PostgreSQL or Redis)
 * or the parameters of a query, and cuts long texts. The patterns are bounded, so that a long text does not block the event loop.
 */
export function redact(text: string): string {
  return (
    (text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} [cut]` : text)
      .replace(/(\nparams: )[\s\S]*/, '$1[redacted]')
      .replace(/(?:[\w-]{1,64}\.)?eyJ[\w-]{1,512}\.[\w-]+\.[\w-]+/g, '[token]')
      .replace(/((?:signature|password)=)[^&\s"']+/g, '$1[redacted]')
      // Matches up to the last @, because a password may contain one, although it should be written as %40.
      .replace(/((?:postgres(?:ql)?|rediss?):\/\/)[^\s"]{0,1024}@/g, '$1[redacted]@')
  );
}
