import { type Goal, printTable } from '../report.ts';
import { percentile } from '../samples.ts';
import { allAnswered, type Fault, type FaultContext, failuresOf, type Phase, type PhaseOptions } from './fault.ts';
import type { Latencies } from './probe.ts';
import { type Subject, type SubjectOptions, startSubject } from './subject.ts';

const PHASE_S_MAX = 60;
const LIVE_MS_MAX = 100;
const FIND_MS_MAX = 250;
const START_S_MAX = 90;
const END_S_MAX = 60;
const FAULT_S_MAX = 420;
const FIGURE_CHARACTERS_MAX = 80;

/** Runs one fault and prints its figures. Returns its goals; a fault that fails adds a goal that is not met. */
export async function runFault(fault: Fault, is_quick: boolean, interrupted: Promise<never>): Promise<Goal[]> {
  console.log(`\n${fault.name}: ${fault.title}`);
  const obstacle = fault.obstacle?.();
  if (obstacle !== undefined) {
    console.log(`  not tried: ${obstacle}`);
    return [{ what: `${fault.name}: is tried`, limit: 'yes', figure: onOneLine(obstacle), is_met: false }];
  }
  const opened = new AsyncDisposableStack();
  const rows: string[][] = [];
  const goals: Goal[] = [];
  const figures: string[][] = [];
  const expect = (measured: Goal) => {
    const goal = { ...measured, figure: onOneLine(measured.figure) };
    goals.push({ ...goal, what: `${fault.name}: ${goal.what}` });
    figures.push([goal.what, goal.figure, `limit ${goal.limit}`, stateOf(goal)]);
  };
  const addLatencies = (phase: string, latencies: Latencies, goal: Goal | undefined) => {
    if (goal) goals.push({ ...goal, what: `${fault.name}: ${goal.what}` });
    rows.push(rowOf(phase, latencies, goal));
  };
  const context = createContext({ is_quick, opened, addLatencies, figures, expect });
  let interruption: unknown;
  try {
    await within(FAULT_S_MAX, 'the fault', Promise.race([fault.run(context), interrupted]));
  } catch (error) {
    if (error instanceof Interruption) interruption = error;
    expect({ what: 'runs to its end', limit: 'yes', figure: describe(error), is_met: false });
  }
  await within(END_S_MAX, 'everything to be removed', opened.disposeAsync()).catch((error) => {
    expect({ what: 'everything is removed', limit: 'yes', figure: describe(error), is_met: false });
  });
  const head = ['', 'n', 'not 200', 'p50 ms', 'p99 ms', 'max ms', 'limit', '', ''];
  if (rows.length > 0) printTable('  Latency', [head, ...rows]);
  if (figures.length > 0) printTable('  Figures', figures);
  if (interruption) throw interruption;
  return goals;
}

/** An interruption of the run: ctrl-C or SIGTERM. */
export class Interruption extends Error {}

interface ContextDependencies extends Pick<FaultContext, 'is_quick' | 'opened' | 'expect'> {
  figures: string[][];
  /** Records the latencies of a phase; without a goal, requests may fail meanwhile. */
  addLatencies(phase: string, latencies: Latencies, goal: Goal | undefined): void;
}

function createContext({ is_quick, opened, addLatencies, figures, expect }: ContextDependencies): FaultContext {
  const is_fresh = new WeakMap<Subject, boolean>();

  async function start(options: SubjectOptions = {}): Promise<Subject> {
    // A start that misses its deadline is still cleaned up: it is disposed of when it is ready.
    const starting = startSubject(options);
    opened.defer(async () => await (await starting.catch(() => undefined))?.[Symbol.asyncDispose]());
    const subject = await within(START_S_MAX, 'the service to start', starting);
    is_fresh.set(subject, options.is_fresh ?? false);
    // The first run of code is not measured.
    await subject.probe.start({ port: subject.port, lines: subject.lines, is_fresh: false });
    await Bun.sleep(1_000);
    await subject.probe.stop();
    return subject;
  }

  async function phase<Result>(
    subject: Subject,
    name: string,
    work: () => Promise<Result>,
    options: PhaseOptions = {},
  ): Promise<Phase<Result>> {
    const { deadline_s = PHASE_S_MAX, has_no_database = false } = options;
    const { live_ms_max = LIVE_MS_MAX, find_ms_max = FIND_MS_MAX } = options;
    const { probe, port, lines } = subject;
    await probe.start({ port, lines, is_fresh: is_fresh.get(subject) ?? false });
    const worked = await within(deadline_s, name, work()).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
    const [live, find] = await probe.stop();
    if (!live || !find) throw new Error('the probe measured nothing');
    addLatencies(name, live, allAnswered(`live, ${name}`, live, live_ms_max));
    const find_goal = allAnswered(`find, ${name}`, find, find_ms_max);
    addLatencies(name, find, has_no_database ? undefined : find_goal);
    if ('error' in worked) throw worked.error;
    return { result: worked.result, live, find };
  }

  return {
    is_quick,
    opened,
    start,
    phase,
    within,
    expect,
    note: (what, figure) => void figures.push([what, onOneLine(figure), '', '']),
  };
}

function rowOf(phase: string, latencies: Latencies, goal: Goal | undefined): string[] {
  const { name, milliseconds, failures } = latencies;
  const failed = failuresOf(latencies);
  const why = Object.entries(failures).map(([outcome, count]) => `${count} × ${outcome}`);
  const figures = [percentile(latencies, 0.5), percentile(latencies, 0.99), Math.max(...milliseconds)];
  const answered = milliseconds.length + failed - (failures['no answer'] ?? 0);
  const shown = figures.map((value) => (Number.isFinite(value) ? value.toFixed(1) : '–'));
  const judged = goal ? [goal.limit, stateOf(goal)] : ['may fail', ''];
  return [`${name}, ${phase}`, String(answered), String(failed), ...shown, ...judged, why.join(', ')];
}

async function within<Result>(deadline_s: number, what: string, work: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${what}: not done after ${deadline_s} s`)), deadline_s * 1_000);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const stateOf = ({ is_met }: Goal): string => (is_met ? 'met' : 'NOT MET');

/** Returns the message of the root cause, because that of a failed query is the text of the query. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : describe(error.cause);
}

const onOneLine = (text: string): string => text.trim().replaceAll(/\s+/g, ' ').slice(0, FIGURE_CHARACTERS_MAX);
