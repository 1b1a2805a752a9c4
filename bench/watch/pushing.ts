import { atLeast, atMost, type Goal, printTable, show } from '../report.ts';
import { startMuster } from './muster.ts';
import type { Peers } from './peers.ts';
import { OFFERED, type Plan } from './plan.ts';
import { type PushServer, startBareBun, startBareElysia } from './servers.ts';
import {
  coresOf,
  medianOf,
  openWatchedServer,
  type Turn,
  USED_HEADS,
  usedBy,
  type WatchedServer,
  type Way,
} from './watched-server.ts';

/** How much two identical copies may differ; if they differ more, the other ratios of the run mean nothing. */
const COPIES_DIFFER_MAX = 0.1;

interface Measured {
  watched: WatchedServer;
  paced: Turn[];
  saturated: Turn[];
}

interface PushingOptions {
  way: Way;
  /** The number of watchers. */
  size: number;
  plan: Plan;
  peers?: Peers;
}

/** Measures watchers of one thing by turns: Bun alone, Muster and its copy, Elysia for polls, the peers for sockets. */
export async function measureOneThing(
  stack: AsyncDisposableStack,
  { way, size, plan, peers }: PushingOptions,
): Promise<Goal[]> {
  await using opened = stack.use(new AsyncDisposableStack());
  const muster = await startMuster(opened);
  const { template } = muster;
  const servers: PushServer[] = [
    opened.use(await startBareBun(template)),
    muster,
    await startMuster(opened, 'Muster, an identical copy'),
    opened.use(await (way === 'sockets' ? startBareBun(template, 'several') : startBareElysia(template))),
  ];
  for (const peer of (await peers?.start(template)) ?? []) servers.push(opened.use(peer));
  const all: Measured[] = [];
  for (const server of servers) {
    const scenario = { name: `one-${way}`, topics: 1 };
    const watched = await openWatchedServer(server, { way, scenario, watchers: size, ...plan });
    all.push({ watched: opened.use(watched), paced: [], saturated: [] });
  }
  const per_second = OFFERED / size;
  for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
    // The peers, whose figures vary little, have one turn less.
    const is_last = repetition > 0 && repetition === plan.repetitions - 1;
    for (const { watched, paced, saturated } of is_last && way === 'sockets' ? all.slice(0, 3) : all) {
      paced.push(await watched.takePacedTurn({ per_second, seconds: plan.paced_s }));
      saturated.push(await watched.takeSaturatedTurn({ seconds: plan.saturated_s }));
    }
  }
  return printOneThing(way, size, all);
}

const NAMES = {
  sockets: { title: 'sockets', body: 'frames/s', each: 'KiB a socket', limit: 0.9 },
  polls: { title: 'long polls', body: 'answers/s', each: 'KiB a poll', limit: 0.8 },
};

function printOneThing(way: Way, size: number, all: Measured[]): Goal[] {
  const { title, body, each, limit } = NAMES[way];
  const [watchers, offered] = [`${show.perSecond(size)} ${title}`, show.perSecond(OFFERED)];
  const lines = all.map(({ watched, paced, saturated }) => ({
    name: watched.server.name,
    bytes_each: watched.bytes_each,
    paced: medianOf(paced),
    saturated: medianOf(saturated),
  }));
  const [bare, muster, copy] = lines;
  if (!bare || !muster || !copy) return [];
  printTable(`${watchers} of one thing, at saturation`, [
    ['', body, 'of Bun', 'changes/s', ...USED_HEADS, 'others'],
    ...lines.map(({ name, saturated }) => [
      name,
      show.perSecond(saturated.bodies),
      show.ratio(saturated.bodies / bare.saturated.bodies),
      saturated.changes.toFixed(0),
      ...usedBy(saturated),
      show.cores(saturated.others),
    ]),
  ]);
  printTable(`${watchers} of one thing, at ${offered} ${body} offered`, [
    ['', body, 'p50 ms', 'p99 ms', 'of Bun', 'cores', each, 'others'],
    ...lines.map(({ name, bytes_each, paced }) => [
      name,
      show.perSecond(paced.bodies),
      show.milliseconds(paced.p50),
      show.milliseconds(paced.p99),
      show.ratio(paced.p99 / bare.paced.p99),
      show.cores(coresOf(paced)),
      show.kibibytes(bytes_each),
      show.cores(paced.others),
    ]),
  ]);
  const p99 = `p99 (${show.milliseconds(muster.paced.p99)} ms)`;
  return [
    copiesGoal(`A/A: ${body} of an identical copy, ${watchers}`, copy.saturated.bodies / muster.saturated.bodies),
    atLeast(`${body} of Bun alone, ${watchers}`, limit, muster.saturated.bodies / bare.saturated.bodies),
    atMost(
      `change sent to PostgreSQL -> last of ${watchers} has it, ${p99}, of Bun alone`,
      1.5,
      muster.paced.p99 / bare.paced.p99,
    ),
  ];
}

function copiesGoal(what: string, ratio: number): Goal {
  const is_met = Math.abs(ratio - 1) <= COPIES_DIFFER_MAX;
  return { what, limit: `within ${COPIES_DIFFER_MAX * 100} %`, figure: show.ratio(ratio), is_met };
}
