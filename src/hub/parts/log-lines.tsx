import { signal, useSignal } from '@preact/signals';
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Answer } from '../data/api.ts';
import type { LogStream } from '../data/log-search.ts';
import { hrefWithout, search } from '../data/router.ts';
import { Ansi } from './ansi.tsx';
import { clockOf, dateOf, dayOf } from './time.tsx';

/** Lines of a stream of a server's log. */
export const LINES = '/games/{game_id}/environments/{environment_id}/servers/{server_id}/log-lines';
/** A log follows new lines while it is scrolled no farther than this from its end. */
const END_WITHIN_PX = 24;

/** When the lines that the page shows of a log were written. */
export const log_times = signal<string[]>([]);

export type Line = Answer<typeof LINES, 'get'>['lines'][number];

/** A line that an address names: its stream, and its number there. */
export interface MarkedLine {
  stream: LogStream;
  number: number;
}

/** A line that is shown, with what tells it from those of the other stream. */
export interface ShownLine {
  key: string;
  stream: LogStream;
  line: Line;
}

interface LogLinesProps {
  lines: ShownLine[];
  /** The line that the address names. */
  marked: MarkedLine | undefined;
  /** Whether these are the last lines of the log, so that new ones follow. */
  is_at_end: boolean;
  /** The text to show if there are no lines. */
  empty: string;
  /** Shows the lines after these; undefined if there are none yet. */
  goOn?(): void;
  /** What is shown above them. */
  children?: ComponentChildren;
}

/** Lines of a log. They follow new ones while they are scrolled to the end. */
export function LogLines({ lines, marked, is_at_end, empty, goOn, children }: LogLinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const is_following = useSignal(is_at_end);
  const highlight = search.value.get('highlight') ?? '';
  const marked_key = marked && `${marked.stream}${marked.number}`;
  useEffect(
    () => () => {
      log_times.value = [];
    },
    [],
  );
  const today = dayOf(Date.now());
  const days = useMemo(() => lines.map(({ line }) => dayOf(line.ts)), [lines.at(-1)?.key, lines.length]);
  const has_marked = marked_key !== undefined && lines.some(({ key }) => key === marked_key);
  useLayoutEffect(() => {
    if (is_following.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.at(-1)?.key, lines.length]);
  useLayoutEffect(() => {
    log_times.value = lines.map(({ line }) => line.ts);
  }, [lines.at(-1)?.key, lines.length]);
  useLayoutEffect(() => {
    if (!has_marked) return;
    is_following.value = false;
    box.current?.querySelector('.is-marked')?.scrollIntoView({ block: 'center' });
  }, [marked_key, has_marked]);
  const updateFollowing = () => {
    if (!box.current) return;
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    is_following.value = scrollHeight - scrollTop - clientHeight < END_WITHIN_PX;
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <div ref={box} class="log card" role="log" aria-label="Lines" tabIndex={0} onScroll={updateFollowing}>
        {children}
        {lines.length === 0 && <p class="quiet">{empty}</p>}
        {lines.flatMap(({ key, ...shown }, index) => {
          const row = <LineRow key={key} {...shown} highlight={highlight} is_marked={key === marked_key} />;
          const is_of_new_day = days[index] !== (days[index - 1] ?? today);
          return is_of_new_day ? [<DayOfLines key={`day of ${key}`} ts={shown.line.ts} />, row] : [row];
        })}
      </div>
      <p class="quiet row">
        {lines.length} {search.value.has('search') && 'matching '}
        {lines.length === 1 ? 'line' : 'lines'}
        {marked && <a href={hrefWithout('line')}>Show the latest lines</a>}
        {goOn && (
          <button type="button" class="small" onClick={goOn}>
            Later lines
          </button>
        )}
        {!goOn && !is_following.value && (
          <button
            type="button"
            class="small"
            onClick={() => {
              if (box.current) box.current.scrollTop = box.current.scrollHeight;
            }}
          >
            Follow
          </button>
        )}
      </p>
    </>
  );
}

/** The date of the lines below it, which say only the time of day. Lines without one are of today. */
function DayOfLines({ ts }: { ts: string }) {
  return (
    <p class="quiet">
      <time dateTime={ts}>{dateOf(ts)}</time>
    </p>
  );
}

interface LineRowProps extends Omit<ShownLine, 'key'> {
  highlight: string;
  is_marked: boolean;
}

/** A line. It is drawn again only if it looks different, because a busy log adds lines to thousands of others. */
class LineRow extends Component<LineRowProps> {
  override shouldComponentUpdate({ line, highlight, is_marked }: LineRowProps): boolean {
    const { props } = this;
    return line !== props.line || highlight !== props.highlight || is_marked !== props.is_marked;
  }

  override render({ stream, line, highlight, is_marked }: LineRowProps) {
    const classes = ['line', ...(stream === 'std_err' ? ['is-err'] : []), ...(is_marked ? ['is-marked'] : [])];
    return (
      <div class={classes.join(' ')}>
        <a
          href={`?${new URLSearchParams({ stream, line: String(line.number) })}`}
          title={`${line.ts}: link to this line`}
        >
          <time dateTime={line.ts}>{clockOf(line.ts)}</time>
        </a>
        <span>
          <Ansi text={line.text} highlight={highlight} />
        </span>
      </div>
    );
  }
}
