import type { Database } from '../../../platform/database/database.ts';
import { toMoment } from '../../../platform/database/moments.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { AppendOnlyLog, LogPage } from '../../../platform/watch/views.ts';
import { topics } from '../../topics.ts';
import { hasServer } from '../store.ts';
import { createLogSearch, type LogSearch } from './log-search.ts';
import * as logStore from './log-store.ts';
import { countLinesBefore } from './log-times.ts';
import { type LogLines, type Logs, PIECE_BYTES_MAX } from './logs.ts';

/** The lines of a log that a reader wants. */
export interface LogQuery extends logStore.LogName {
  /** Unix milliseconds: only lines written at this moment or later. */
  start_ms?: number | undefined;
  /** Only lines with this number or a later one. */
  first_line?: number | undefined;
  search?: LogSearch | undefined;
}

interface LogReadingDependencies {
  database: Database;
  logs: Logs;
}

/** Creates the watchable log of servers: all lines of one stream, those since a given time, or those with a text. */
export function createLogReading({
  database,
  logs,
}: LogReadingDependencies): AppendOnlyLog<LogQuery, LogLines['lines']> {
  const { queries } = database;
  const log_search = createLogSearch(database);

  /** Returns the number of the first line written at a given time or later. */
  async function findLineAt(name: logStore.LogName, moment: Date): Promise<number> {
    const line = await logStore.selectEnd(queries, name, moment);
    const chunks = await logStore.selectPageFrom(queries, name, line, {
      chunks_max: 2,
      bytes_max: 2 * PIECE_BYTES_MAX,
    });
    const following = chunks.find(({ first_line }) => first_line >= line);
    return following ? following.first_line + countLinesBefore(following, moment) : line;
  }

  async function readFrom(query: LogQuery, line: number): Promise<LogPage<LogLines['lines']>> {
    const { server_id, stream, start_ms } = query;
    const name = { server_id, stream };
    const { lines, next_line } = query.search
      ? await log_search.from(name, line, query.search)
      : await logs.linesFrom(name, line);
    // A follower of a removed server would wait forever.
    if (lines.length === 0 && next_line === line && !(await hasServer(queries, server_id))) {
      throw new ServiceError('SERVERS_SERVER_NOT_FOUND', {});
    }
    return { content: lines.filter(({ ts }) => start_ms === undefined || ts.getTime() >= start_ms), next: next_line };
  }

  async function readLast({ search, ...query }: LogQuery): Promise<LogPage<LogLines['lines']>> {
    const name = { server_id: query.server_id, stream: query.stream };
    const { lines, next_line } = search ? await log_search.last(name, search) : await logs.lastLines(name);
    return { content: lines, next: next_line };
  }

  return {
    // The topic of the server is bumped when it is removed, even if it never wrote a line.
    topics: ({ server_id, stream }) => [topics.log(server_id, stream), topics.server(server_id)],
    last: readLast,
    async first(query) {
      const { start_ms, first_line = 0 } = query;
      if (start_ms === undefined && query.first_line === undefined) return await readLast(query);
      const line = start_ms === undefined ? 0 : await findLineAt(query, toMoment(start_ms));
      return await readFrom(query, Math.max(line, first_line));
    },
    end: ({ server_id, stream }) => logStore.selectEnd(queries, { server_id, stream }),
    from: readFrom,
  };
}
