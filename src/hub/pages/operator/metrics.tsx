import { MINUTE_MS } from '../../../shared/units.ts';
import type { Answer } from '../../data/api.ts';
import { latestStep } from '../../data/counters.ts';
import { Chart, type ChartLine } from '../../parts/chart.tsx';
import { Polled } from '../../parts/polled.tsx';
import { Process } from '../../parts/process.tsx';
import { Section } from '../../parts/section.tsx';
import { sizeOf } from '../../parts/size.ts';

const COUNTERS = '/cloud/service/counters';
const SAMPLES = '/cloud/service/samples';
const MINUTES = 60;
/** Eight charts have to fit a phone. */
const HEIGHT_PX = 120;
/** Thousandths of a core for each per cent of it. */
const CPU_OF_PERCENT = 10;

type Minute = Answer<typeof COUNTERS, 'get'>['minutes'][number];
type Sampled = Answer<typeof SAMPLES, 'get'>;

/** The last hour: of all games, and of the process that answers. */
export function Metrics() {
  return (
    <Section title="The last hour">
      <Polled path={COUNTERS} every_ms={MINUTE_MS}>
        {({ minutes }) => <GameCharts minutes={minutes} />}
      </Polled>
      <Polled path={SAMPLES} every_ms={MINUTE_MS / 4}>
        {(body) => (
          <>
            <Process of={body.process} />
            <ProcessCharts of={body} />
          </>
        )}
      </Polled>
    </Section>
  );
}

function GameCharts({ minutes }: { minutes: Minute[] }) {
  const last = latestStep(MINUTE_MS, Date.now());
  const times = Array.from({ length: MINUTES }, (_, index) => last - (MINUTES - 1 - index) * MINUTE_MS);
  const by_time = new Map(minutes.map((minute) => [Date.parse(minute.start_ts), minute]));
  const valuesOf = (name: 'players' | 'lobbies' | 'seated' | 'refused') =>
    times.map((time) => by_time.get(time)?.[name] ?? 0);
  return (
    <ul class="cards">
      <Metric
        times={times}
        latest="last"
        lines={[
          { name: 'players', color: '--accent', values: valuesOf('players') },
          { name: 'lobbies', color: '--warn', values: valuesOf('lobbies') },
        ]}
      />
      <Metric
        times={times}
        latest="last"
        lines={[
          { name: 'requests that got a seat, a minute', color: '--accent', values: valuesOf('seated') },
          { name: 'refused', color: '--bad', values: valuesOf('refused') },
        ]}
      />
    </ul>
  );
}

function ProcessCharts({ of: { samples } }: { of: Sampled }) {
  const times = samples.map(({ ts }) => Date.parse(ts));
  const valuesOf = (read: (sample: Sampled['samples'][number]) => number) => samples.map(read);
  return (
    <ul class="cards">
      <Metric
        times={times}
        lines={[{ name: '% of a core', color: '--accent', values: valuesOf(({ cpu }) => cpu / CPU_OF_PERCENT) }]}
      />
      <Metric
        times={times}
        lines={[{ name: 'memory', color: '--accent', values: valuesOf(({ memory_bytes = 0 }) => memory_bytes) }]}
        write={(bytes) => sizeOf(bytes).replace('.0 ', ' ')}
      />
      <Metric
        times={times}
        lines={[
          {
            name: 'requests a minute',
            color: '--accent',
            values: valuesOf(({ requests, span_ms }) => (requests * MINUTE_MS) / span_ms),
          },
          {
            name: 'failed',
            color: '--bad',
            values: valuesOf((one) => (one.failed_requests * MINUTE_MS) / one.span_ms),
          },
        ]}
      />
      <Metric
        times={times}
        lines={[{ name: 'longest event loop delay, ms', color: '--warn', values: valuesOf((one) => one.delay_ms) }]}
      />
      <Metric
        times={times}
        lines={[
          { name: 'sockets', color: '--accent', values: valuesOf(({ sockets }) => sockets) },
          { name: 'polls and subscriptions', color: '--warn', values: valuesOf(({ watchers }) => watchers) },
        ]}
      />
      <Metric
        times={times}
        lines={[
          {
            name: 'connections to PostgreSQL',
            color: '--accent',
            values: valuesOf(({ database_connections = 0 }) => database_connections),
          },
        ]}
      />
    </ul>
  );
}

interface MetricProps {
  times: number[];
  lines: ChartLine[];
  /** What the latest value is called. */
  latest?: 'now' | 'last';
  write?(value: number): string;
}

function Metric({ times, lines, latest = 'now', write = (value) => String(Math.round(value)) }: MetricProps) {
  const describe = ({ name, values }: ChartLine) =>
    `${name}: ${write(values.at(-1) ?? 0)} ${latest}, ${write(Math.max(0, ...values))} at most`;
  return (
    <li class="card pad">
      <Chart label={lines.map(describe).join('; ')} times={times} lines={lines} write={write} height_px={HEIGHT_PX} />
    </li>
  );
}
