import { log_times } from './log.tsx';
import { clockOf, durationOf, now } from './time.tsx';

/** Parts of the strip in which lines of the log are one mark. */
const LOG_MARKS_MAX = 200;

/** A moment in the life of a lobby or a server. */
export interface Step {
  name: string;
  at: string | number | undefined;
  /** What its mark looks like: a player who comes or goes, or a change. By default it is a stage of the life. */
  kind?: 'in' | 'out' | 'change';
}

interface LifeProps {
  steps: Step[];
  /** Whether nothing more happens. */
  is_over: boolean;
}

/** What has happened to a thing: as marks along its time, with those of the log below, and as a list, the latest first. */
export function Life({ steps, is_over }: LifeProps) {
  const known = steps
    .flatMap(({ at, ...step }) => (at === undefined ? [] : [{ ...step, at: new Date(at).getTime() }]))
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
          <Mark key={`${name}${at}`} kind={kind} share={shareAt(at)} title={`${clockOf(new Date(at))} ${name}`} />
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <ol aria-label="Events" reversed tabIndex={0}>
        {known.toReversed().map(({ name, at, kind = 'stage' }) => (
          <li key={`${name}${at}`} class={kind}>
            <time dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString()}>
              {clockOf(new Date(at))}
            </time>{' '}
            {name} {at > begin && <span class="quiet">after {textOfDuration(at - begin)}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Mark({ kind, share, title }: { kind: string; share: number; title?: string }) {
  return <i class={kind} title={title} style={{ left: `${(100 * share).toFixed(2)}%` }} />;
}

function textOfDuration(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : durationOf(ms);
}
