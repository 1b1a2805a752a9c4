import { machineSeconds, type ProcessorTime, processorSeconds, residentBytes, startMeter } from '../meter.ts';
import { middleOf, show } from '../report.ts';
import { percentile } from '../samples.ts';
import { type Load, startLoad } from './load.ts';
import type { Group } from './orders.ts';
import type { PushServer, Scenario } from './servers.ts';

/** Changes in progress at saturation: while one is sent, the next one is ready. */
const UNDER_WAY = 2;
/** Time after which a change counts as lost. */
const SEEN_WITHIN_MS = 30_000;
/** Cores that other programs may use; beyond that, a turn is not conclusive. */
const OTHERS_MAX = 0.25;
const REPEAT_AFTER_MS = 1_000;

export type Way = 'sockets' | 'polls';

/** The figures of one turn, or the medians of several. Processor time is per second, so 1 is a whole core. */
export interface Turn extends ProcessorTime {
  /** Received bodies per second. */
  bodies: number;
  /** Changes per second that all watchers have seen. */
  changes: number;
  /** Milliseconds from each change until the last watcher has it. */
  p50: number;
  p99: number;
  /** Cores that other programs on the machine used. */
  others: number;
}

/** Cores that a server's process used. */
export function coresOf({ thread, rest }: Turn): number {
  return thread + rest;
}

/** The column names for {@link usedBy}. */
export const USED_HEADS = ['µs each: thread', 'PostgreSQL', 'rest', 'load'];

/** The processor time of each body, as cells of a table. */
export function usedBy({ bodies, thread, database, rest, load }: Turn): string[] {
  return [thread, database, rest, load].map((cores) => show.microseconds(cores / bodies));
}

/** A server with its watchers. */
export interface WatchedServer extends AsyncDisposable {
  server: PushServer;
  /** Bytes by which the server has grown for each watcher. */
  bytes_each: number;
  /** Makes changes at a rate, whether the previous one has been seen or not. */
  takePacedTurn(options: { per_second: number; seconds: number }): Promise<Turn>;
  /** Makes changes as fast as they are seen. */
  takeSaturatedTurn(options: { seconds: number }): Promise<Turn>;
}

interface WatchedServerOptions {
  way: Way;
  scenario: Scenario;
  /** The watchers of each topic. */
  watchers: number;
  /** Time until memory is measured. */
  settle_ms: number;
  /** How often to repeat a turn during which other programs used the processors. */
  repeats_max: number;
}

/** Opens the watchers. */
export async function openWatchedServer(server: PushServer, options: WatchedServerOptions): Promise<WatchedServer> {
  const { way, scenario, watchers, settle_ms, repeats_max } = options;
  await server.prepare(scenario);
  const load = await startLoad(way === 'sockets' ? 'listeners' : 'pollers');
  keepApart(server.pid, load.pid);
  const groups = Array.from({ length: scenario.topics }, (_, topic): Group => {
    const watching = way === 'sockets' ? server.watch(scenario, topic) : server.poll(scenario, topic);
    return { ...watching, count: watchers };
  });
  const { port, dialect } = server;
  const before = residentBytes(server.pid);
  await load.open(way === 'sockets' ? { order: 'listen', port, dialect, groups } : { order: 'poll', port, groups });
  await Bun.sleep(settle_ms);
  const all = watchers * scenario.topics;
  const bytes_each = (residentBytes(server.pid) - before) / all;

  let number = 0;
  const changed_at = new Map<number, number>();
  let last_change = Promise.resolve();
  const change = () => {
    number += 1;
    const mine = number;
    last_change = last_change.then(async () => void changed_at.set(mine, await server.change(scenario, mine)));
    return last_change;
  };

  /** Measures while changes are made, until all of them have been seen. */
  async function takeTurn(makeChanges: (onSeen: (callback: () => void) => void) => Promise<void>): Promise<Turn> {
    const milliseconds: number[] = [];
    const seen_all = Promise.withResolvers<void>();
    let onSeen = () => {};
    let is_made = false;
    const first = number;
    let changes = 0;
    const unsubscribe = load.onReached(async (reached, at) => {
      changes += 1;
      // The watchers may have the change before this process knows that it is committed.
      while (!changed_at.has(reached)) await Bun.sleep(0);
      milliseconds.push(Math.max(0, at - (changed_at.get(reached) ?? at)));
      onSeen();
      if (is_made && first + changes === number) seen_all.resolve();
    });
    const stop = startTurn(server, load);
    await makeChanges((callback) => {
      onSeen = callback;
    });
    is_made = true;
    const late = setTimeout(
      () => seen_all.reject(new Error(`a change was not seen by all within ${SEEN_WITHIN_MS} ms`)),
      SEEN_WITHIN_MS,
    );
    if (first + changes < number) await seen_all.promise;
    clearTimeout(late);
    const measured = await stop();
    unsubscribe();
    const samples = { name: server.name, milliseconds };
    const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)];
    return { ...measured, changes: changes / measured.seconds, p50, p99 };
  }

  async function takeUndisturbedTurn(makeChanges: Parameters<typeof takeTurn>[0]): Promise<Turn> {
    for (let repeats = 0; ; repeats += 1) {
      const measured = await takeTurn(makeChanges);
      if (measured.others <= OTHERS_MAX || repeats >= repeats_max) return measured;
      await Bun.sleep(REPEAT_AFTER_MS);
    }
  }

  return {
    server,
    bytes_each,
    takePacedTurn: ({ per_second, seconds }) =>
      takeUndisturbedTurn(async () => {
        const started = performance.now();
        for (let made = 0; made < per_second * seconds; made += 1) {
          await Bun.sleep(Math.max(0, started + (made * 1_000) / per_second - performance.now()));
          await change();
        }
        await Bun.sleep(Math.max(0, started + seconds * 1_000 - performance.now()));
      }),
    takeSaturatedTurn: ({ seconds }) =>
      takeUndisturbedTurn(async (onSeen) => {
        const end = performance.now() + seconds * 1_000;
        const over = Promise.withResolvers<void>();
        onSeen(() => {
          if (performance.now() > end) over.resolve();
          else change().catch(over.reject);
        });
        for (let made = 0; made < UNDER_WAY; made += 1) await change();
        await over.promise;
      }),
    [Symbol.asyncDispose]: () => load[Symbol.asyncDispose](),
  };
}

/** Measures until the returned function is called. */
function startTurn({ pid: server_pid, database_pid }: PushServer, load: Load) {
  const look = async () => {
    const bodies = await load.countBodies();
    return { bodies, at: performance.now(), own: processorSeconds(process.pid), machine: machineSeconds() };
  };
  const beginning = look();
  const readMeter = startMeter({ server_pid, database_pid, load_pid: load.pid });
  return async () => {
    const [first, last] = [await beginning, await look()];
    const used = readMeter();
    const seconds = (last.at - first.at) / 1_000;
    const used_s = used.thread + used.rest + used.database + used.load + last.own - first.own;
    return {
      seconds,
      bodies: (last.bodies - first.bodies) / seconds,
      thread: used.thread / seconds,
      rest: used.rest / seconds,
      database: used.database / seconds,
      load: used.load / seconds,
      others: Math.max(0, last.machine - first.machine - used_s) / seconds,
    };
  };
}

/** Returns the median of each figure. */
export function medianOf(turns: Turn[]): Turn {
  const middle = (name: keyof Turn) => middleOf(turns.map((turn) => turn[name]));
  return {
    bodies: middle('bodies'),
    changes: middle('changes'),
    p50: middle('p50'),
    p99: middle('p99'),
    thread: middle('thread'),
    rest: middle('rest'),
    database: middle('database'),
    load: middle('load'),
    others: middle('others'),
  };
}

/** Gives the server and the load a processor each, if `taskset` is installed; otherwise they sometimes share one. */
function keepApart(server_pid: number, load_pid: number): void {
  for (const [processor, pid] of [server_pid, load_pid].entries()) {
    if (Bun.which('taskset') === null) return;
    Bun.spawnSync(['taskset', '-a', '-c', '-p', String(processor), String(pid)]);
  }
}
