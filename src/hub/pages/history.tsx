import { useComputed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { MINUTE_MS } from '../../shared/units.ts';
import {
  COUNTERS,
  type Counted,
  type CounterPeriod,
  linesOf,
  PERIODS,
  refusalsOf,
  stepsWithin,
} from '../data/counters.ts';
import { useDeployments } from '../data/deployments.ts';
import { useNamespace, versionName } from '../data/namespaces.ts';
import { hrefOf, search } from '../data/router.ts';
import { useWatched } from '../data/watched.ts';
import { Chart } from '../parts/chart.tsx';
import { Choice } from '../parts/filters.tsx';
import { Notice } from '../parts/notice.tsx';
import { now } from '../parts/time.tsx';

const REFUSALS_MAX = 5;
const TEXTS: Record<CounterPeriod, string> = { hour: 'the last hour', day: 'the last day', week: 'the last week' };
const OTHERS: CounterPeriod[] = ['hour', 'week'];

/** Players and lobbies of the namespace over time, with its deploys, and what happened to requests for seats. */
export function History() {
  const { scope } = useNamespace();
  const period = OTHERS.find((one) => one === search.value.get('over')) ?? 'day';
  const watched = useWatched(COUNTERS, scope, { window: period }).value;
  // No new answer comes while nothing happens, so the period of this one moves on by itself.
  const minute = useComputed(() => Math.floor(now.value / MINUTE_MS)).value;
  const counted = useMemo(
    () =>
      watched.is === 'here'
        ? { ...watched.body, steps: stepsWithin(watched.body.steps, period, Date.now()) }
        : undefined,
    [watched, period, minute],
  );
  return (
    <section class="card pad stack" aria-label="History">
      <div class="row filters">
        <Choice name="over" label="Players over" options={OTHERS.map((one) => [one, TEXTS[one]])} none={TEXTS.day} />
        {counted && <Requests of={counted} />}
      </div>
      {watched.is === 'refused' && <Notice error={watched.error} />}
      {counted && counted.steps.length > 0 && <PlayersChart of={counted} period={period} />}
      {counted && <Refusals of={counted} />}
    </section>
  );
}

function PlayersChart({ of, period }: { of: Counted; period: CounterPeriod }) {
  const { game, namespace } = useNamespace();
  const { deployments } = useDeployments({ game, namespace });
  const { times, players, lobbies } = useMemo(() => linesOf(of, period, Date.now()), [of, period]);
  const lines = useMemo(
    () => [
      { name: 'players', color: '--accent', values: players },
      { name: 'lobbies', color: '--warn', values: lobbies },
    ],
    [players, lobbies],
  );
  const marks = useMemo(() => {
    const begin = Date.now() - PERIODS[period];
    const all = deployments.map(({ deploy_ts, version_id }) => ({ at: Date.parse(deploy_ts), version_id }));
    return all
      .filter(({ at }) => at >= begin)
      .map(({ at, version_id }) => ({ at, text: versionName(game, version_id) }));
  }, [deployments, of, period]);
  const deploys = marks.length === 0 ? '' : `; deployed: ${marks.map(({ text }) => text).join(', ')}`;
  const label = `Players over ${TEXTS[period]}: ${Math.max(...players)} at most, ${players.at(-1)} at last${deploys}`;
  return <Chart label={label} times={times} lines={lines} marks={marks} />;
}

function Requests({ of: { steps } }: { of: Counted }) {
  const sum = (read: (step: Counted['steps'][number]) => number) => steps.reduce((all, step) => all + read(step), 0);
  const seats = sum(({ finds, joins, creates }) => finds + joins + creates);
  const refused = refusalsOf(steps).reduce((all, [, count]) => all + count, 0);
  const slowest = Math.max(0, ...steps.map(({ find_p95_ms = 0 }) => find_p95_ms));
  return (
    <p class="quiet end">
      {seats} {seats === 1 ? 'request' : 'requests'} got a seat, {refused} did not
      {slowest > 0 && `; 95 % of the finds took at most ${Math.round(slowest)} ms`}
    </p>
  );
}

/** The most frequent refusals, each with a way to its requests. */
function Refusals({ of: { steps } }: { of: Counted }) {
  const { game, namespace } = useNamespace();
  const refusals = refusalsOf(steps).slice(0, REFUSALS_MAX);
  if (refusals.length === 0) return null;
  const address = { game: game.name_id, namespace: namespace.name_id, page: 'why' };
  return (
    <ul class="row codes" aria-label="Refusals">
      {refusals.map(([code, count]) => (
        <li key={code}>
          {count} × <a href={hrefOf(address, { code })}>{code}</a>
        </li>
      ))}
    </ul>
  );
}
