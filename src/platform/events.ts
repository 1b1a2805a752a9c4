import pino from 'pino';
import pretty from 'pino-pretty';

/** What the service tells the people who run it. One list; the log is made from it. */
export type ServiceEvent =
  | { event: 'service_started'; version: string; url: string; started_in_ms: number }
  | { event: 'service_stopping'; reason: string }
  | { event: 'unexpected_failure'; cause: unknown }
  | { event: 'database_started'; process_id: number }
  | { event: 'database_lost'; cause: unknown }
  | { event: 'feed_reconnected' }
  | { event: 'request_served'; ray_id: string; method: string; route: string; status: number; duration_ms: number }
  | { event: 'request_failed'; ray_id: string; method: string; route: string; cause: unknown }
  | { event: 'loop_failed'; loop: string; failures: number; cause: unknown }
  | { event: 'loop_corrected'; loop: string; count: number }
  | { event: 'server_step_failed'; server_id: string; step: string; cause: unknown }
  | { event: 'server_started'; server_id: string; process_id: number; ports: number[] }
  | { event: 'server_adopted'; server_id: string; process_id: number }
  | {
      event: 'server_ended';
      server_id: string;
      exit_code: number | null;
      exit_signal: string | null;
      failure: string | null;
    }
  | { event: 'lobby_created'; lobby_id: string; namespace_id: string; game_mode: string; region: string }
  | { event: 'lobby_ready'; lobby_id: string; after_ms: number }
  | { event: 'lobby_stopped'; lobby_id: string; reason: string }
  | { event: 'seats_expired'; reason: string; count: number }
  | { event: 'upload_abandoned'; upload_id: string }
  | { event: 'identity_forgotten'; identity_id: string };

export type EventName = ServiceEvent['event'];

export interface Events {
  emit(event: ServiceEvent): void;
}

export type LogLevel = 'off' | 'error' | 'warn' | 'info' | 'debug';

const LEVELS: Record<EventName, Exclude<LogLevel, 'off'>> = {
  service_started: 'info',
  service_stopping: 'info',
  unexpected_failure: 'error',
  database_started: 'debug',
  database_lost: 'error',
  feed_reconnected: 'warn',
  request_served: 'debug',
  request_failed: 'error',
  loop_failed: 'error',
  loop_corrected: 'debug',
  server_step_failed: 'error',
  server_started: 'info',
  server_adopted: 'info',
  server_ended: 'info',
  lobby_created: 'info',
  lobby_ready: 'info',
  lobby_stopped: 'info',
  seats_expired: 'info',
  upload_abandoned: 'info',
  identity_forgotten: 'info',
};

/** Writes every event to stderr: as lines for a person when that is a terminal, else as JSON, one object a line. */
export function createLog(level: LogLevel): Events {
  if (level === 'off') return { emit() {} };
  const to_stderr = { fd: 2, sync: true };
  const destination = process.stderr.isTTY
    ? pretty({ destination: 2, sync: true, messageKey: 'event', singleLine: true, translateTime: 'HH:MM:ss' })
    : pino.destination(to_stderr);
  const log = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (name) => ({ level: name }) },
      serializers: { cause: describeCause },
    },
    destination,
  );
  return {
    emit({ event, ...details }) {
      log[LEVELS[event]](details, event);
    },
  };
}

/** An error with its causes, as plain data, without the secrets it may quote. */
function describeCause(cause: unknown): unknown {
  if (!(cause instanceof Error)) return blot(String(cause));
  const below = cause.cause === undefined ? {} : { cause: describeCause(cause.cause) };
  return { name: cause.name, message: blot(cause.message), stack: blot(cause.stack ?? ''), ...below };
}

/** Takes out of a text what looks like a token, an upload's signature, a database password or a query's parameters. */
export function blot(text: string): string {
  return text
    .replace(/(\nparams: )[\s\S]*?(?=\n {4}at |$)/g, '$1[blotted]')
    .replace(/[\w-]*\.?eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '[token]')
    .replace(/(signature=)[^&\s"']+/g, '$1[blotted]')
    .replace(/(postgres(?:ql)?:\/\/)[^\s"'@]*@/g, '$1[blotted]@');
}
