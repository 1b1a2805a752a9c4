import type { LifeEvent } from '../data/lobby-life.ts';
import { log_times } from './log-lines.tsx';
import { datedClockOf, durationOf, momentOf, now } from './time.tsx';

/** The strip has this many places for lines of the log. All lines of one place share a mark. */
const LOG_MARKS_MAX = 200;

interface LifeProps {
  events: LifeEvent[];
  /** Whether nothing more happens. */
  is_over: boolean;
}

/** What has happened to a lobby or a server: a strip of marks along its time, also for log lines; and a list, latest first. */
export function Life({ events, is_over }: LifeProps) {
  const known = events
    .flatMap(({ at, ...event }) => (at === undefined ? [] : [{ ...event, at: new Date(at).getTime() }]))
    .sort((one, other) => one.at - other.at);
  const begin = known[0]?.at ?? 0;
  const last = known.at(-1)?.at ?? 0;
  const length = Math.max(1, (is_over ? last : Math.max(last, now.value)) - begin);
  const shareAt = (at: number) => Math.min(1, Math.max(0, (at - begin) / length));
  const logged = new Set(log_times.value.map((ts) => Math.round(LOG_MARKS_MAX * shareAt(Date.parse(ts)))));
  return (
    <section class="life card pad stack" aria-label="Life">
      <div class="strip" aria-hidden="true">
        {[...logged].map((mark) => (
          <Mark key={`lines${mark}`} kind="lines" share={mark / LOG_MARKS_MAX} />
        ))}
        {known.map(({ name, at, kind = 'stage' }) => (
          <Mark key={`${name}${at}`} kind={kind} share={shareAt(at)} title={`${datedClockOf(at)} ${name}`} />
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <ol aria-label="Events" reversed tabIndex={0}>
        {known.toReversed().map(({ name, at, kind = 'stage' }) => (
          <li key={`${name}${at}`} class={kind}>
            <time dateTime={new Date(at).toISOString()} title={momentOf(at)}>
              {datedClockOf(at)}
            </time>{' '}
            {name} {at > begin && <span class="quiet">after {exactDurationOf(at - begin)}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Mark({ kind, share, title }: { kind: string; share: number; title?: string }) {
  return <i class={kind} title={title} style={{ left: `${(100 * share).toFixed(2)}%` }} />;
}

/** Returns a duration in its largest unit; below a second, in milliseconds. */
function exactDurationOf(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : durationOf(ms);
}
