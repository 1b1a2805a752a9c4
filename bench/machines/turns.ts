import type { Program } from '../../tests/support/program.ts';
import type { Played } from '../matchmaker/arena.ts';
import type { Callers } from '../matchmaker/calls.ts';
import { FIND, type Turn, withAttempts } from '../matchmaker/targets.ts';
import { type ProcessorTime, startMeter } from '../meter.ts';
import { middleOf } from '../report.ts';
import type { Group } from './group.ts';

/** Time of finds before a turn, in which the processes read the lobbies that were emptied. */
const SETTLE_S = 1;

/** A process, the namespace in which players find lobbies through it, and the process that sends their requests. */
export interface LoadedProcess {
  program: Program;
  played: Played;
  caller: Callers;
}

interface SharedTurnOptions {
  /** Clients of all processes together. */
  clients: number;
  seconds: number;
  lobbies: number;
}

/**
 * Lets clients find seats through some processes of a group, while the others are paused. Returns the figures of all of them
 * together.
 */
export async function takeSharedTurn(group: Group, loaded: LoadedProcess[], options: SharedTurnOptions): Promise<Turn> {
  const running = new Set(loaded.map(({ program }) => program));
  const paused = group.processes.filter((program) => !running.has(program));
  for (const { pid } of paused) process.kill(pid, 'SIGSTOP');
  try {
    return await withAttempts(() => measureTurn(group, loaded, options));
  } finally {
    for (const { pid } of paused) process.kill(pid, 'SIGCONT');
  }
}

async function measureTurn(
  { database_pid }: Group,
  loaded: LoadedProcess[],
  { clients, seconds, lobbies }: SharedTurnOptions,
): Promise<Turn> {
  for (const played of new Set(loaded.map((one) => one.played))) await played.lobbies.empty({ lobbies });
  const find = (within_s: number) =>
    Promise.all(
      loaded.map(({ caller, played: { headers } }) =>
        caller.call({ path: FIND.path, requests: [{ headers, body: FIND.body }], seconds: within_s }),
      ),
    );
  for (const { program, caller } of loaded) {
    await caller.open(Number(new URL(program.url).port), Math.ceil(clients / loaded.length));
  }
  await find(SETTLE_S);
  const meters = loaded.map(({ program, caller }, index) =>
    // The database is that of all.
    startMeter({ server_pid: program.pid, load_pid: caller.pid, ...(index === 0 && { database_pid }) }),
  );
  const called = await find(seconds);
  const used = meters.map((readMeter) => readMeter());
  const failures = called.flatMap((one) => Object.keys(one.failures));
  if (failures.length > 0) throw new Error(`finds were refused: ${failures.join(', ')}`);
  const answered = sumOf(called.map((one) => one.answered));
  const perFind = (role: keyof ProcessorTime) => sumOf(used.map((one) => one[role])) / answered;
  return {
    per_second: sumOf(called.map((one) => one.answered / one.seconds)),
    p50_ms: middleOf(called.map(({ p50_ms }) => p50_ms)),
    p99_ms: Math.max(...called.map(({ p99_ms }) => p99_ms)),
    thread: perFind('thread'),
    rest: perFind('rest'),
    database: perFind('database'),
    load: perFind('load'),
  };
}

function sumOf(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
