import { familyOf, machineSeconds, processorSeconds, residentBytes } from '../meter.ts';
import { middleOf } from '../report.ts';
import { percentile } from '../samples.ts';
import { type Load, startLoad } from './load.ts';
import type { Group } from './orders.ts';
import type { PushServer, Scenario } from './servers.ts';

/** How many changes are on their way when as many are made as can be: while one is sent, the next one is there. */
const UNDER_WAY = 2;
/** Time after which a change counts as not seen. */
const SEEN_WITHIN_MS = 30_000;
/** When others use more than so many cores, a run says little. */
const OTHERS_MAX = 0.25;
const REPEAT_AFTER_MS = 1_000;

export type Way = 'sockets' | 'polls';

/** What one run has shown. */
export interface Run {
  /** Bodies that came, a second. */
  bodies: number;
  /** Changes that all have seen, a second. */
  changes: number;
  /** Milliseconds from a change to the moment at which the last of all has it. */
  p50: number;
  p99: number;
  /** Processor time a second: of the server's process, of its PostgreSQL, of the load, and of others on the machine. */
  cores: number;
  database_cores: number;
  load_cores: number;
  other_cores: number;
}

/** A server with those who watch it. */
export interface Trial extends AsyncDisposable {
  server: PushServer;
  /** How much the server has grown by each, in bytes. */
  bytes_each: number;
  /** Makes a number of changes a second, whether the last one has been seen or not. */
  runPaced(options: { per_second: number; seconds: number }): Promise<Run>;
  /** Makes changes as fast as they are seen. */
  runSaturated(options: { seconds: number }): Promise<Run>;
}

interface TrialOptions {
  way: Way;
  scenario: Scenario;
  /** Of each topic. */
  watchers: number;
  /** Until memory is looked at. */
  settle_ms: number;
  /** How often a run is repeated in which others used the processors. */
  repeats_max: number;
}

/** Opens the watchers. */
export async function openTrial(server: PushServer, options: TrialOptions): Promise<Trial> {
  const { way, scenario, watchers, settle_ms, repeats_max } = options;
  await server.prepare(scenario);
  const load = await startLoad(way === 'sockets' ? 'listeners' : 'pollers');
  keepApart(server.pid, load.pid);
  const groups = Array.from({ length: scenario.topics }, (_, topic): Group => {
    const door = way === 'sockets' ? server.watch(scenario, topic) : server.poll(scenario, topic);
    return { ...door, count: watchers };
  });
  const { port, dialect } = server;
  const before = residentBytes(server.pid);
  await load.open(way === 'sockets' ? { order: 'listen', port, dialect, groups } : { order: 'poll', port, groups });
  await Bun.sleep(settle_ms);
  const all = watchers * scenario.topics;
  const bytes_each = (residentBytes(server.pid) - before) / all;

  let number = 0;
  const told = new Map<number, number>();
  let last_change = Promise.resolve();
  const change = () => {
    number += 1;
    const mine = number;
    last_change = last_change.then(async () => void told.set(mine, await server.change(scenario, mine)));
    return last_change;
  };

  /** Measures while changes are made, until all of them have been seen. */
  async function run(makeChanges: (onSeen: (callback: () => void) => void) => Promise<void>): Promise<Run> {
    const milliseconds: number[] = [];
    const seen_all = Promise.withResolvers<void>();
    let onSeen = () => {};
    let is_made = false;
    const first = number;
    let changes = 0;
    const forget = load.onReached(async (reached, at) => {
      changes += 1;
      // Who is told before the one who changed it is faster than him.
      while (!told.has(reached)) await Bun.sleep(0);
      milliseconds.push(Math.max(0, at - (told.get(reached) ?? at)));
      onSeen();
      if (is_made && first + changes === number) seen_all.resolve();
    });
    const stop = startMeter(server, load);
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
    forget();
    const samples = { name: server.name, milliseconds };
    const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)];
    return { ...measured, changes: changes / measured.seconds, p50, p99 };
  }

  async function runUndisturbed(makeChanges: Parameters<typeof run>[0]): Promise<Run> {
    for (let repeats = 0; ; repeats += 1) {
      const shown = await run(makeChanges);
      if (shown.other_cores <= OTHERS_MAX || repeats >= repeats_max) return shown;
      await Bun.sleep(REPEAT_AFTER_MS);
    }
  }

  return {
    server,
    bytes_each,
    runPaced: ({ per_second, seconds }) =>
      runUndisturbed(async () => {
        const started = performance.now();
        for (let made = 0; made < per_second * seconds; made += 1) {
          await Bun.sleep(Math.max(0, started + (made * 1_000) / per_second - performance.now()));
          await change();
        }
        await Bun.sleep(Math.max(0, started + seconds * 1_000 - performance.now()));
      }),
    runSaturated: ({ seconds }) =>
      runUndisturbed(async (onSeen) => {
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
function startMeter(server: PushServer, load: Load) {
  const database = server.database_pid === undefined ? [] : familyOf(server.database_pid);
  const look = async () => ({
    at: performance.now(),
    bodies: await load.countBodies(),
    server: processorSeconds(server.pid),
    database: new Map(database.map((pid) => [pid, processorSeconds(pid)])),
    load: processorSeconds(load.pid),
    own: processorSeconds(process.pid),
    machine: machineSeconds(),
  });
  const beginning = look();
  return async () => {
    const [first, last] = [await beginning, await look()];
    const seconds = (last.at - first.at) / 1_000;
    const cores = (last.server - first.server) / seconds;
    let database_seconds = 0;
    for (const [pid, used] of last.database) {
      // One that has ended meanwhile is not counted.
      if (used > 0) database_seconds += used - (first.database.get(pid) ?? 0);
    }
    const database_cores = database_seconds / seconds;
    const load_cores = (last.load - first.load) / seconds;
    const own_cores = (last.own - first.own) / seconds;
    const machine_cores = (last.machine - first.machine) / seconds;
    const other_cores = Math.max(0, machine_cores - cores - database_cores - load_cores - own_cores);
    return { seconds, bodies: (last.bodies - first.bodies) / seconds, cores, database_cores, load_cores, other_cores };
  };
}

/** The middle of what several runs have shown, each value for itself. */
export function medianOf(runs: Run[]): Run {
  const middle = (name: keyof Run) => middleOf(runs.map((run) => run[name]));
  return {
    bodies: middle('bodies'),
    changes: middle('changes'),
    p50: middle('p50'),
    p99: middle('p99'),
    cores: middle('cores'),
    database_cores: middle('database_cores'),
    load_cores: middle('load_cores'),
    other_cores: middle('other_cores'),
  };
}

/** A processor for the server and one for the load, where it can be had: else they sometimes share one. */
function keepApart(server_pid: number, load_pid: number): void {
  for (const [processor, pid] of [server_pid, load_pid].entries()) {
    if (Bun.which('taskset') === null) return;
    Bun.spawnSync(['taskset', '-a', '-c', '-p', String(processor), String(pid)]);
  }
}
