import { readDuration } from '../durations.ts';
import { paths } from '../paths.ts';
import { findServer } from '../servers.ts';
import { Session, type SharedOptions } from '../session.ts';

interface HistoryOptions extends SharedOptions {
  since: string;
}

interface LogOptions extends SharedOptions {
  errors?: boolean;
}

/** Writes a link to the history of a game's lobbies, as CSV. */
export async function exportLobbies(options: HistoryOptions): Promise<void> {
  const query_end = Date.now();
  const since_ms = readDuration(options.since, '--since', { min_ms: 1_000, max_ms: Number.POSITIVE_INFINITY });
  const body = { query_start: Math.max(0, query_end - since_ms), query_end };
  const session = await Session.open(options);
  const { game_id } = await session.game();
  const path = `/cloud/games/${game_id}/matchmaker/lobbies/export-history`;
  const answer = await session.api.call<{ url: string }>('POST', path, { body });
  session.show(answer, (output) => output.line(answer.url));
}

/** Writes a link to the whole log of a server. */
export async function exportLog(given: string, options: LogOptions): Promise<void> {
  const session = await Session.open(options);
  const scope = await session.scope();
  const { id } = await findServer(session, scope, given);
  const body = { stream: options.errors ? 'std_err' : 'std_out' };
  const path = `${paths.servers(scope)}/${id}/logs/export`;
  const answer = await session.api.call<{ url: string }>('POST', path, { body });
  session.show(answer, (output) => output.line(answer.url));
}
