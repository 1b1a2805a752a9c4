import { useSignal } from '@preact/signals';
import { useAction } from '../data/actions.ts';
import { type Parameters, post, type Query } from '../data/api.ts';
import { useEntries } from '../data/entries.ts';
import { type LogStream, type Search, useLogSearch } from '../data/log-search.ts';
import { search } from '../data/router.ts';
import { Choice, TextFilter } from './filters.tsx';
import { LINES, type Line, LogLines, type MarkedLine, type ShownLine } from './log-lines.tsx';
import { Notice } from './notice.tsx';

const EXPORT = '/games/{game_id}/environments/{environment_id}/servers/{server_id}/logs/export';
/** Lines of a stream that the page keeps. */
const LINES_MAX = 2_000;
/** Lines before the one that an address names. */
const LINES_BEFORE = 100;
const STREAMS: LogStream[] = ['std_out', 'std_err'];

interface LogProps {
  parameters: Parameters<typeof LINES>;
  /** When the server was created, in Unix milliseconds. */
  since: number;
}

/** The log of a server. It follows new lines while it is scrolled to its end. Filters are in the address. */
export function Log({ parameters, since }: LogProps) {
  const filters = search.value;
  const text = filters.get('search') ?? '';
  const marked = readLine(filters);
  const begin = beginOf(marked, since);
  return (
    <section class="stack" aria-label="Log">
      <div class="row filters">
        <TextFilter name="search" label="Search the whole log" />
        <TextFilter name="highlight" label="Highlight" />
        <Choice
          name="stream"
          label="Stream"
          removes="line"
          options={[
            ['std_out', 'std_out'],
            ['std_err', 'std_err'],
          ]}
        />
        <Choice
          name="from"
          label="From"
          removes="line"
          options={[['beginning', 'the first line']]}
          none="the latest lines"
        />
        <Download parameters={parameters} stream={filters.get('stream') === 'std_err' ? 'std_err' : 'std_out'} />
      </div>
      {text === '' ? (
        <Streams key={JSON.stringify(begin)} parameters={parameters} begin={begin} marked={marked} />
      ) : (
        <Found parameters={parameters} text={text} />
      )}
    </section>
  );
}

function readLine(filters: URLSearchParams): MarkedLine | undefined {
  const given = filters.get('line') ?? '';
  const stream = readStream(filters);
  return stream !== undefined && /^\d{1,15}$/.test(given) ? { stream, number: Number(given) } : undefined;
}

function readStream(filters: URLSearchParams): LogStream | undefined {
  return STREAMS.find((one) => one === filters.get('stream'));
}

/** Returns where a log begins: some lines before a named one, or at the first line; undefined for the last lines. */
function beginOf(marked: MarkedLine | undefined, since: number): Query | undefined {
  if (marked) return { first_line: String(Math.max(0, marked.number - LINES_BEFORE)) };
  return search.value.get('from') === 'beginning' ? { query_start_ts: String(since) } : undefined;
}

function Download({ parameters, stream }: { parameters: LogProps['parameters']; stream: 'std_out' | 'std_err' }) {
  const { is_busy, act } = useAction();
  const download = () =>
    act(undefined, async () => {
      const { url } = await post(EXPORT, parameters, { stream });
      const { pathname, search: signature } = new URL(url);
      // Not by going there: an answer other than the file, such as that the service is away, would replace the page.
      Object.assign(document.createElement('a'), { href: pathname + signature, download: '' }).click();
    });
  return (
    <button type="button" class="end" disabled={is_busy.value} onClick={() => void download()}>
      Download {stream}
    </button>
  );
}

interface StreamsProps {
  parameters: LogProps['parameters'];
  /** Where the streams begin; undefined for the last lines, which follow what is written. */
  begin: Query | undefined;
  marked: MarkedLine | undefined;
}

/** The lines of the streams, as they are written. With a `begin`, later lines come when the user asks for them. */
function Streams({ parameters, begin, marked }: StreamsProps) {
  const wanted = readStream(search.value);
  const begins = useSignal<Partial<Record<LogStream, Query>>>({});
  const keeps = begin === undefined ? 'latest' : 'first';
  const useOne = (name: LogStream) => {
    const query = { ...(begins.value[name] ?? begin), stream: name };
    const is_wanted = wanted === undefined || wanted === name;
    return useStream(is_wanted ? parameters : undefined, query, keeps).value;
  };
  const of = { std_out: useOne('std_out'), std_err: useOne('std_err') };
  const streams = STREAMS.filter((name) => wanted === undefined || wanted === name).map((name) => ({
    ...of[name],
    name,
    lines: of[name].entries,
  }));
  const error = streams.find((stream) => stream.error)?.error;
  if (error) return <Notice error={error} />;
  // After the last line of a full stream, nothing is shown: later lines of that stream are not read, so they would be missing.
  const ends = streams.flatMap(({ is_full, lines }) => (is_full ? [lines.at(-1)?.ts ?? ''] : []));
  const [until] = ends.sort();
  const shown = streams.map(({ name, lines }) => ({
    name,
    lines: until === undefined ? lines : lines.filter(({ ts }) => ts <= until),
  }));
  const goOn = () => {
    const next = shown.flatMap(({ name, lines }): [LogStream, Query][] => {
      const last = lines.at(-1);
      return last ? [[name, { first_line: String(last.number + 1) }]] : [];
    });
    begins.value = { ...begins.value, ...Object.fromEntries(next) };
  };
  // The lines of a stream are numbered from 0.
  const earlier = begin ? 0 : streams.reduce((sum, { lines }) => sum + (lines[0]?.number ?? 0), 0);
  const has_begun = streams.every((stream) => stream.has_begun);
  return (
    <LogLines
      key={JSON.stringify(begins.value)}
      lines={inOrder(shown.flatMap(({ name, lines }) => toShown(name, lines)))}
      marked={marked}
      is_at_end={begin === undefined}
      empty={has_begun ? 'No line was written.' : 'Loading …'}
      {...(until !== undefined && { goOn })}
    >
      {earlier > 0 && (
        <p class="quiet">
          {earlier === 1 ? '1 earlier line is' : `${earlier} earlier lines are`} not shown here. "Search the whole log"
          also searches {earlier === 1 ? 'it' : 'them'}.
        </p>
      )}
    </LogLines>
  );
}

/** The lines that contain a text: those that the service finds, and new ones. */
function Found({ parameters, text }: { parameters: LogProps['parameters']; text: string }) {
  const wanted = readStream(search.value);
  const out = useFound(parameters, 'std_out', wanted === 'std_err' ? '' : text);
  const err = useFound(parameters, 'std_err', wanted === 'std_out' ? '' : text);
  const found = [...(wanted === 'std_err' ? [] : [out]), ...(wanted === 'std_out' ? [] : [err])];
  const error = found.find((one) => one.error)?.error;
  if (error) return <Notice error={error} />;
  const later_error = found.find((one) => one.later_error)?.later_error;
  const is_done = found.every((one) => one.is_done);
  const lines = inOrder(found.flatMap(({ stream, lines }) => toShown(stream, lines)));
  const empty = is_done ? 'No line has this text. New lines are searched, too.' : 'Searching …';
  return (
    <LogLines lines={lines} marked={undefined} is_at_end empty={empty}>
      {later_error && <Notice error={later_error} />}
      <SearchProgress of={found} is_done={is_done} />
    </LogLines>
  );
}

/** Searches a stream, and watches what is written after that. */
function useFound(parameters: LogProps['parameters'], stream: LogStream, text: string) {
  const found = useLogSearch({ parameters, stream, text, lines_max: LINES_MAX }).value;
  const { end_line } = found;
  const is_begun = text !== '' && end_line !== undefined;
  const query = { stream, search_text: text, first_line: String(end_line ?? 0) };
  const later = useStream(is_begun ? parameters : undefined, query, 'latest').value;
  return { ...found, later_error: later.error, stream, lines: [...found.lines, ...later.entries] };
}

function SearchProgress({ of, is_done }: { of: Pick<Search, 'from_line' | 'end_line'>[]; is_done: boolean }) {
  const total = of.reduce((sum, { end_line = 0 }) => sum + end_line, 0);
  const left = of.reduce((sum, { end_line, from_line }) => sum + (end_line === undefined ? 0 : from_line), 0);
  const searched = total - left;
  if (!is_done) {
    return (
      <label class="row quiet">
        Searching <progress value={searched} max={Math.max(1, total)} /> {searched} of {total} lines
      </label>
    );
  }
  if (left > 0) return <p class="quiet">The latest {searched} lines were searched. Earlier matches are not shown.</p>;
  return <p class="quiet">{total === 1 ? 'The only line was searched.' : `All ${total} lines were searched.`}</p>;
}

function useStream(parameters: LogProps['parameters'] | undefined, query: Query, keeps: 'latest' | 'first') {
  return useEntries<typeof LINES, Line>({
    path: LINES,
    parameters,
    query,
    entries_max: LINES_MAX,
    keeps,
    read: ({ lines }) => lines,
  });
}

function toShown(stream: LogStream, lines: Line[]): ShownLine[] {
  return lines.map((line) => ({ key: `${stream}${line.number}`, stream, line }));
}

function inOrder(lines: ShownLine[]): ShownLine[] {
  return lines.sort(({ line: one }, { line: other }) => (one.ts === other.ts ? 0 : one.ts < other.ts ? -1 : 1));
}
