import { type ProcessorTime, startMeter } from '../meter.ts';
import { middleOf, show } from '../report.ts';
import type { Callers } from './calls.ts';

/** Path and body of a find. */
export const FIND = { path: '/matchmaker/lobbies/find', body: JSON.stringify({ game_modes: ['default'] }) };
/** Time of calls before a turn, in which the service reads the lobbies that were emptied. */
const SETTLE_S = 0.3;
const ATTEMPTS_MAX = 5;

/** A server to measure. */
export interface Target {
  name: string;
  pid: number;
  database_pid?: number;
  port: number;
  path: string;
  /** Lines of each request, each with its end. */
  headers: string;
  body: string;
  /** Called before each turn. */
  prepare(): Promise<void>;
}

/** The figures of one turn, or the medians of several. Processor time is for each request, in seconds. */
export interface Turn extends ProcessorTime {
  per_second: number;
  p50_ms: number;
  p99_ms: number;
}

export interface TurnOptions {
  clients: number;
  seconds: number;
  /** Requests per second; without it, each client sends a request when it has the answer to its last one. */
  per_second?: number;
}

/** Calls a target. Repeats a turn in which a request was refused, because a refusal costs less than a seat. */
export async function takeTurn(target: Target, callers: Callers, options: TurnOptions): Promise<Turn> {
  const { path, headers, body } = target;
  const { clients, seconds, per_second } = options;
  const calls = { path, requests: [{ headers, body }], per_second };
  return await withAttempts(async () => {
    await target.prepare();
    await callers.open(target.port, clients);
    await callers.call({ ...calls, seconds: SETTLE_S });
    return await measureCalls(target, callers, { ...calls, seconds });
  });
}

/** Repeats a turn that fails, a few times. */
export async function withAttempts<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX) throw error;
      console.log(`Repeated a turn: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/** Measures calls over the open connections. Fails when an answer is not 200, or when there is none. */
export async function measureCalls(
  { pid, database_pid }: Pick<Target, 'pid' | 'database_pid'>,
  callers: Callers,
  calls: Parameters<Callers['call']>[0],
): Promise<Turn & { answers: string[] }> {
  const readMeter = startMeter({ server_pid: pid, database_pid, load_pid: callers.pid });
  const { answered, seconds, p50_ms, p99_ms, answers, failures } = await callers.call(calls);
  const { thread, rest, database, load } = readMeter();
  if (answered === 0) throw new Error(`${calls.path} was not called`);
  if (Object.keys(failures).length > 0) throw new Error(`${calls.path} answered ${JSON.stringify(failures)}`);
  return {
    per_second: answered / seconds,
    p50_ms,
    p99_ms,
    answers,
    thread: thread / answered,
    rest: rest / answered,
    database: database / answered,
    load: load / answered,
  };
}

/** Returns the median of each figure. */
export function medianOf(turns: Turn[]): Turn {
  const middle = (figure: keyof Turn) => middleOf(turns.map((turn) => turn[figure]));
  return {
    per_second: middle('per_second'),
    p50_ms: middle('p50_ms'),
    p99_ms: middle('p99_ms'),
    thread: middle('thread'),
    rest: middle('rest'),
    database: middle('database'),
    load: middle('load'),
  };
}

/** The column names for {@link cellsOf}. */
export const TURN_HEADS = ['a second', 'of Elysia', 'p50 ms', 'p99 ms', 'µs: thread', 'PostgreSQL', 'rest', 'load'];

/** Returns a turn as cells of a table, beside a peer's. */
export function cellsOf(turn: Turn, peer: Turn): string[] {
  const times = [turn.p50_ms, turn.p99_ms].map((milliseconds) => milliseconds.toFixed(2));
  const processor = [turn.thread, turn.database, turn.rest, turn.load].map(show.microseconds);
  return [show.perSecond(turn.per_second), show.ratio(turn.per_second / peer.per_second), ...times, ...processor];
}
