import { stringify } from 'csv-stringify/sync';
import { ServiceError } from '../../platform/errors.ts';
import type { SignedLinks } from '../../platform/objects/links.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import type { Servers } from '../servers/servers.ts';
import { HISTORY_COLUMNS, historyTimes, type Window } from './rules.ts';

const HISTORY_PATH = '/exports/lobby-history.csv';
const LOGS_PATH = '/exports/lobby-logs.csv';

type Stream = 'std_out' | 'std_err';

interface ExportsDependencies {
  lobbies: Lobbies;
  servers: Servers;
  links: SignedLinks;
}

export type Exports = ReturnType<typeof createExports>;

/**
 * Tables to take away, as CSV (RFC 4180; cells that a spreadsheet would run as formulas are made harmless). Asked for with
 * a token, fetched by a link that is good for an hour; read from the database while they are sent, so that a million rows
 * need no more memory than a page of them.
 */
export function createExports({ lobbies, servers, links }: ExportsDependencies) {
  return {
    /** A link to the history of a game's lobbies that ran within a window. Throws VALIDATION_ERROR. */
    lobbyHistoryLink(game_id: string, { start, end }: Window): string {
      if (start > end) throw new ServiceError('VALIDATION_ERROR', { error: 'query_end is before query_start' });
      return links.sign(HISTORY_PATH, { game_id, start: String(start), end: String(end) });
    },
    /** A link to what a lobby's server wrote. Throws MATCHMAKER_LOBBY_NOT_FOUND. */
    async lobbyLogsLink(place: { game_id: string; lobby_id: string }, stream: Stream): Promise<string> {
      return links.sign(LOGS_PATH, { server_id: await lobbies.serverOf(place), stream });
    },
    /** The table that a link leads to. Throws LINK_INVALID. */
    lobbyHistory(url: string): ReadableStream<Uint8Array> {
      const parameters = links.verify(url);
      const window = { start: Number(parameters.get('start')), end: Number(parameters.get('end')) };
      return toCsv([...HISTORY_COLUMNS], historyRows(parameters.get('game_id') ?? '', window));
    },
    lobbyLogs(url: string): ReadableStream<Uint8Array> {
      const parameters = links.verify(url);
      const stream = parameters.get('stream') === 'std_err' ? 'std_err' : 'std_out';
      return toCsv(['timestamp', 'line'], logRows(parameters.get('server_id') ?? '', stream));
    },
  };

  async function* historyRows(game_id: string, window: Window): AsyncGenerator<Cell[][]> {
    for await (const page of lobbies.history.pages(game_id, window)) {
      yield page.map((lobby) => {
        const values: Record<string, Cell> = { ...lobby, ...historyTimes(lobby, window) };
        return HISTORY_COLUMNS.map((column) => values[column] ?? '');
      });
    }
  }

  async function* logRows(server_id: string, stream: Stream): AsyncGenerator<Cell[][]> {
    for (let next = 0; ; ) {
      const found = await servers.log.from({ server_id, stream }, next);
      if (found.next === next) return;
      yield found.content.map(({ bytes, ts }) => [ts.toISOString(), Buffer.from(bytes).toString()]);
      next = found.next;
    }
  }
}

type Cell = string | number | Date | null;

/** The pages of a table, as they are asked for. */
function toCsv(columns: string[], pages: AsyncGenerator<Cell[][]>): ReadableStream<Uint8Array> {
  const encode = (rows: Cell[][]) =>
    new TextEncoder().encode(stringify(rows, { escape_formulas: true, record_delimiter: 'windows' }));
  return new ReadableStream({
    start: (table) => table.enqueue(encode([columns])),
    async pull(table) {
      const { done, value } = await pages.next();
      if (done) table.close();
      else table.enqueue(encode(value));
    },
    async cancel() {
      await pages.return(undefined);
    },
  });
}
