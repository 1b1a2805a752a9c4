import { stringify } from 'csv-stringify/sync';
import type { SignedLinks } from '../../platform/objects/links.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import { refuseProblem } from '../names.ts';
import type { LogStream, Servers } from '../servers/servers.ts';
import { HISTORY_COLUMNS, historyTimes, type TimeWindow } from './rules.ts';

export const HISTORY_PATH = '/exports/lobby-history.csv';
export const LOGS_PATH = '/exports/lobby-logs.csv';
export const SERVER_LOG_PATH = '/exports/server-log.txt';

export interface ExportsDependencies {
  lobbies: Lobbies;
  servers: Servers;
  links: SignedLinks;
}

export type Exports = ReturnType<typeof createExports>;

/**
 * Creates the use cases of exports: tables as CSV (RFC 4180), in which cells that a spreadsheet would run as formulas are
 * escaped, and logs also as text. A caller gets a link, which is valid for an hour. Rows are read while they are sent, so
 * a million rows need the memory of one page.
 */
export function createExports({ lobbies, servers, links }: ExportsDependencies) {
  return {
    /** Returns a link to the history of a game's lobbies that ran within a window. Throws VALIDATION_ERROR. */
    lobbyHistoryLink(game_id: string, { start, end }: TimeWindow): string {
      if (start > end) refuseProblem(['query_start', 'too-late'], 'it is after query_end');
      return links.sign(HISTORY_PATH, { game_id, start: String(start), end: String(end) });
    },
    /** Returns a link to the log of a lobby's server. Throws MATCHMAKER_LOBBY_NOT_FOUND. */
    async lobbyLogsLink(lobby: { game_id: string; lobby_id: string }, stream: LogStream): Promise<string> {
      return links.sign(LOGS_PATH, { server_id: await lobbies.serverOf(lobby), stream });
    },
    /** Returns a link to a log of a server of an environment. Throws SERVERS_SERVER_NOT_FOUND. */
    async serverLogLink(scope: { game_id: string; namespace_id: string }, server_id: string, stream: LogStream) {
      await servers.get(scope, server_id);
      return links.sign(SERVER_LOG_PATH, { server_id, stream });
    },
    /** Returns the lobby history that a link is for. Throws LINK_INVALID. */
    lobbyHistory(url: string): ReadableStream<Uint8Array> {
      const parameters = links.verify(url);
      const window = { start: Number(parameters.get('start')), end: Number(parameters.get('end')) };
      return toCsv([...HISTORY_COLUMNS], historyRows(parameters.get('game_id') ?? '', window));
    },
    /** Returns the log that a link is for. Throws LINK_INVALID. */
    lobbyLogs(url: string): ReadableStream<Uint8Array> {
      return toCsv(['timestamp', 'line'], logRows(servers.log, readLogLink(url)));
    },
    /** Returns the log that a link is for, as text: each line after its time. Throws LINK_INVALID. */
    serverLog(url: string): ReadableStream<Uint8Array> {
      const pages = logRows(servers.log, readLogLink(url));
      return toStream(pages, (rows) => rows.map(([ts, line]) => `${ts} ${line}\n`).join(''));
    },
  };

  function readLogLink(url: string): { server_id: string; stream: LogStream } {
    const parameters = links.verify(url);
    const stream = parameters.get('stream') === 'std_err' ? 'std_err' : 'std_out';
    return { server_id: parameters.get('server_id') ?? '', stream };
  }

  async function* historyRows(game_id: string, window: TimeWindow): AsyncGenerator<Cell[][]> {
    for await (const page of lobbies.developerApi.exportPages(game_id, window)) {
      yield page.map((lobby) => {
        const values: Record<string, Cell> = { ...lobby, ...historyTimes(lobby, window) };
        return HISTORY_COLUMNS.map((column) => values[column] ?? '');
      });
    }
  }
}

type Cell = string | number | Date | null;

/** Reads the lines that a log has now. Later pages are not read: a server may print faster than a client reads. */
export async function* logRows(
  log: Servers['log'],
  name: { server_id: string; stream: LogStream },
): AsyncGenerator<Cell[][]> {
  const { next: end } = await log.last(name);
  let next = 0;
  // Reads an empty log too, because the read fails if its server was removed.
  do {
    const found = await log.from(name, next);
    if (found.next === next) return;
    yield found.content.map(({ bytes, ts }) => [ts.toISOString(), Buffer.from(bytes).toString()]);
    next = found.next;
  } while (next < end);
}

/** Streams the pages of a table as they are read. */
function toCsv(columns: string[], pages: AsyncGenerator<Cell[][]>): ReadableStream<Uint8Array> {
  const write = (rows: Cell[][]) => stringify(rows, { escape_formulas: true, record_delimiter: 'windows' });
  return toStream(pages, write, write([columns]));
}

/** Streams pages as text while they are read. */
function toStream(
  pages: AsyncGenerator<Cell[][]>,
  write: (rows: Cell[][]) => string,
  head = '',
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(head)),
    async pull(controller) {
      const { done, value } = await pages.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(write(value)));
    },
    async cancel() {
      await pages.return(undefined);
    },
  });
}
