import { type ApiCaller, LONG_ATTEMPTS_MAX } from './api-caller.ts';

const STREAMS = ['std_out', 'std_err'] as const;
type Stream = (typeof STREAMS)[number];

/** Without a moment to begin at, the service answers with this many lines of each stream at most, the last ones. */
export const LAST_LINES_MAX = 256;
/** How long a poll waits for the last lines once all have been written. */
const LAST_LINES_WITHIN_MS = 1_000;

interface LogPage {
  lines: string[];
  timestamps: string[];
  watch: { index: string };
}

export interface LogLine {
  ts: string;
  stream: Stream;
  text: string;
}

interface LogQuery {
  /** The server's path of the API. */
  path: string;
  /** Only lines that contain a text. */
  grep?: string | undefined;
  /** Only lines since a moment; without it, the last lines of each stream. */
  since?: Date | undefined;
  onLine: (line: LogLine) => void;
  /** Ends the reading, which throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** How a server has ended. */
export interface ServerEnd {
  summary: string;
  has_crashed: boolean;
}

/** Returns the lines that a server has written, in the order of time. */
export async function readLog(api: ApiCaller, log: Omit<LogQuery, 'onLine'>): Promise<LogLine[]> {
  const pages = await readFirstPages(api, log);
  const lines = pages.flatMap((page) => page.lines);
  if (log.since !== undefined) {
    // The pages are the oldest ones, and others follow.
    const rest = { ...log, onLine: (line: LogLine) => void lines.push(line), written: AbortSignal.abort() };
    await Promise.all(
      pages.map(async ({ stream, index }) => {
        if (log.grep === undefined) return await readRest(api, { ...rest, stream, index });
        const { last_ts } = await readEnd(api, { ...log, stream });
        await followStream(api, { ...rest, stream, index, until_ts: last_ts });
      }),
    );
  }
  return lines.toSorted(byTime);
}

/** Returns whether a server may have earlier lines than those that `readLog` returned. */
export function mayHaveEarlierLines(read: readonly LogLine[], { since }: Pick<LogQuery, 'since'>): boolean {
  if (since !== undefined) return false;
  return STREAMS.some((one) => read.filter(({ stream }) => stream === one).length >= LAST_LINES_MAX);
}

/** Passes on the log of a server: what is there, then new lines until the server has ended. Returns how it has ended. */
export async function followLog(api: ApiCaller, log: LogQuery): Promise<ServerEnd> {
  const pages = await readFirstPages(api, log);
  for (const line of pages.flatMap(({ lines }) => lines).toSorted(byTime)) log.onLine(line);
  const ended = new AbortController();
  const following = pages.map(({ stream, index }) =>
    followStream(api, { ...log, stream, index, written: ended.signal }),
  );
  const ending = waitForEnd(api, log).finally(() => ended.abort());
  const [end] = await Promise.all([ending, ...following]);
  return end;
}

const byTime = (one: LogLine, other: LogLine) => one.ts.localeCompare(other.ts);

const readFirstPages = (api: ApiCaller, log: Omit<LogQuery, 'onLine'>): Promise<LogPageLines[]> =>
  Promise.all(STREAMS.map((stream) => readPage(api, { ...log, stream })));

interface PageToRead extends Omit<LogQuery, 'onLine'> {
  stream: Stream;
  /** Makes the read wait for lines after this index. */
  index?: string;
}

interface LogPageLines {
  stream: Stream;
  lines: LogLine[];
  index: string;
}

async function readPage(
  api: ApiCaller,
  { path, stream, grep, since, index, signal }: PageToRead,
): Promise<LogPageLines> {
  const query = { stream, search_text: grep, query_start_ts: since?.toISOString(), watch_index: index };
  const attempts_max = index === undefined ? undefined : LONG_ATTEMPTS_MAX;
  const page = await api.get<LogPage>(`${path}/logs`, { query, signal, attempts_max });
  const lines = page.lines.map((line, at) => ({
    ts: page.timestamps[at] ?? '',
    stream,
    text: Buffer.from(line, 'base64').toString(),
  }));
  return { stream, lines, index: page.watch.index };
}

interface StreamToFollow extends LogQuery {
  stream: Stream;
  index: string;
  /** Aborted once all lines have been written. */
  written: AbortSignal;
  /** A later line ends the reading. */
  until_ts?: string;
}

/** Reads a stream until all lines have been written and read. */
async function followStream(api: ApiCaller, { written, until_ts, ...log }: StreamToFollow): Promise<void> {
  for (let { index } = log; ; ) {
    const waiting = new AbortController();
    const giveUp = () => setTimeout(() => waiting.abort(), LAST_LINES_WITHIN_MS);
    if (written.aborted) giveUp();
    else written.addEventListener('abort', giveUp, { once: true });
    const signals = [waiting.signal, log.signal].filter((one) => one !== undefined);
    const page = await readPage(api, { ...log, index, signal: AbortSignal.any(signals) }).catch((error: unknown) => {
      if (!waiting.signal.aborted) throw error;
    });
    written.removeEventListener('abort', giveUp);
    // On a slow connection, lines may have been on their way.
    if (!page) return await readRest(api, { ...log, index });
    for (const line of page.lines) log.onLine(line);
    if (until_ts !== undefined && lastTsOf(page) > until_ts) return;
    ({ index } = page);
  }
}

/** Reads the lines between an index and the present end of a stream. */
async function readRest(api: ApiCaller, { grep, onLine, ...log }: Omit<StreamToFollow, 'written'>): Promise<void> {
  const end = await readEnd(api, log);
  // Only a reading without a search gets to the index of the end.
  for (let { index } = log; index !== end.index; ) {
    const page = await readPage(api, { ...log, index });
    for (const line of page.lines) if (contains(line, grep)) onLine(line);
    // A server that goes on may have written past that end meanwhile.
    if (page.index === index || lastTsOf(page) > end.last_ts) return;
    ({ index } = page);
  }
}

/** Returns the present end of a stream. */
async function readEnd(
  api: ApiCaller,
  { path, stream, signal }: PageToRead,
): Promise<{ index: string; last_ts: string }> {
  const page = await readPage(api, { path, stream, signal });
  return { index: page.index, last_ts: lastTsOf(page) };
}

const lastTsOf = ({ lines }: LogPageLines) => lines.at(-1)?.ts ?? '';

/** Returns whether a search of the service finds a line. */
function contains({ text }: LogLine, grep = ''): boolean {
  return text.toLowerCase().includes(grep.toLowerCase());
}

async function waitForEnd(api: ApiCaller, { path, signal }: LogQuery): Promise<ServerEnd> {
  for (let index: string | undefined; ; ) {
    const { end, watch } = await api.get<{ end?: ServerEnd; watch: { index: string } }>(`${path}/end`, {
      query: { watch_index: index },
      signal,
      attempts_max: LONG_ATTEMPTS_MAX,
    });
    if (end) return end;
    ({ index } = watch);
  }
}
