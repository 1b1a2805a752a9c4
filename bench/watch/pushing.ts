import { type Goal, printTable, show } from '../report.ts';
import { startMuster } from './muster.ts';
import type { Peers } from './peers.ts';
import { OFFERED, type Plan } from './plan.ts';
import { type PushServer, startBareBun, startBareElysia } from './servers.ts';
import { medianOf, openTrial, type Run, type Trial, type Way } from './trial.ts';

interface Measured {
  trial: Trial;
  paced: Run[];
  saturated: Run[];
}

/** One thing that all watch: Muster, Bun alone, of polls a route of Elysia's and, of sockets, the peers; by turns. */
export async function measureOneThing(way: Way, size: number, plan: Plan, peers: Peers | undefined): Promise<Goal[]> {
  await using opened = new AsyncDisposableStack();
  const muster = opened.use(await startMuster());
  const servers: PushServer[] = [opened.use(await startBareBun(muster.template)), muster];
  const other = way === 'sockets' ? startBareBun(muster.template, 'several') : startBareElysia(muster.template);
  servers.push(opened.use(await other));
  for (const peer of (await peers?.start(muster.template)) ?? []) servers.push(opened.use(peer));
  const all: Measured[] = [];
  for (const server of servers) {
    const scenario = { name: `one-${way}`, topics: 1 };
    const trial = await openTrial(server, { way, scenario, watchers: size, ...plan });
    all.push({ trial: opened.use(trial), paced: [], saturated: [] });
  }
  const per_second = OFFERED / size;
  for (let round = 0; round < plan.rounds; round += 1) {
    const is_last = round > 0 && round === plan.rounds - 1;
    for (const { trial, paced, saturated } of is_last && way === 'sockets' ? all.slice(0, 2) : all) {
      paced.push(await trial.runPaced({ per_second, seconds: plan.paced_s }));
      saturated.push(await trial.runSaturated({ seconds: plan.saturated_s }));
    }
  }
  return printOneThing(way, size, all);
}

const NAMES = {
  sockets: { title: 'sockets', body: 'frames/s', each: 'KB a socket' },
  polls: { title: 'long polls', body: 'answers/s', each: 'KB a poll' },
};

function printOneThing(way: Way, size: number, all: Measured[]): Goal[] {
  const { title, body, each } = NAMES[way];
  const offered = show.perSecond(OFFERED);
  const lines = all.map(({ trial, paced, saturated }) => ({
    name: trial.server.name,
    bytes_each: trial.bytes_each,
    paced: medianOf(paced),
    saturated: medianOf(saturated),
  }));
  const [bare, muster] = lines;
  if (!bare || !muster) return [];
  printTable(`${show.perSecond(size)} ${title} of one thing: at saturation, and at ${offered} ${body} offered`, [
    [
      '',
      body,
      'of Bun',
      'changes/s',
      'cores',
      'µs each',
      'at',
      offered,
      'p50 ms',
      'p99 ms',
      'of Bun',
      'cores',
      each,
      'load',
      'others',
    ],
    ...lines.map(({ name, bytes_each, paced, saturated }) => [
      name,
      show.perSecond(saturated.bodies),
      show.ratio(saturated.bodies / bare.saturated.bodies),
      saturated.changes.toFixed(0),
      show.cores(saturated.cores),
      show.microseconds(saturated.cores / saturated.bodies),
      '',
      show.perSecond(paced.bodies),
      show.milliseconds(paced.p50),
      show.milliseconds(paced.p99),
      show.ratio(paced.p99 / bare.paced.p99),
      show.cores(paced.cores),
      show.kilobytes(bytes_each),
      show.cores(saturated.load_cores),
      show.cores(Math.max(saturated.other_cores, paced.other_cores)),
    ]),
  ]);
  const speed = muster.saturated.bodies / bare.saturated.bodies;
  const lateness = muster.paced.p99 / bare.paced.p99;
  const least = way === 'sockets' ? 0.9 : 0.8;
  return [
    {
      what: `${body} of Bun alone, ${show.perSecond(size)} ${title}`,
      limit: `>= ${show.ratio(least)}`,
      figure: show.ratio(speed),
      is_met: speed >= least,
    },
    {
      what: `change sent to PostgreSQL -> last of ${show.perSecond(size)} ${title} has it, p99`,
      limit: '<= 1.50×',
      figure: `${show.ratio(lateness)} (${show.milliseconds(muster.paced.p99)} ms)`,
      is_met: lateness <= 1.5,
    },
  ];
}
