import { EXIT, Failure } from '../../terminal/failure.ts';
import { parseDuration } from '../durations.ts';
import { followServerLogs, readServerLogs } from '../namespace-log.ts';
import { paths } from '../paths.ts';
import { pick } from '../pick.ts';
import { followLog, LAST_LINES_MAX, type LogLine, mayHaveEarlierLines, readLog } from '../server-log.ts';
import { readAllServers, readNewestServers, readServer, type Server } from '../servers.ts';
import { type Scope, Session, type SharedOptions } from '../session.ts';

interface LogsOptions extends SharedOptions {
  follow?: boolean;
  grep?: string;
  since?: string;
  server?: string;
  lobby?: string;
  all?: boolean;
}

const EARLIER_LINES = `At most the last ${LAST_LINES_MAX} lines of each stream are shown. For older ones: --since 1d`;

interface Wanted {
  grep: string | undefined;
  since: Date | undefined;
}

/** Shows the log of a server, by default of the newest, also if it has ended; with `--all`, of several. */
export async function logs(given: string | undefined, options: LogsOptions): Promise<void> {
  const { server, lobby, all = false, follow = false, grep } = options;
  if ([given, server, lobby, all || undefined].filter((one) => one !== undefined).length > 1) {
    throw new Failure('Name one server or lobby, or write --all.', EXIT.wrong_use);
  }
  const wanted = { grep, since: options.since === undefined ? undefined : readSince(options.since) };
  const session = await Session.open(options);
  const scope = await session.scope();
  if (all) return follow ? await followAll(session, scope, wanted) : await showAll(session, scope, wanted);
  const chosen = await chooseServer(session, scope, { given, server, lobby });
  session.output.say(`Server ${chosen.id}, lobby ${chosen.tags.lobby_id ?? '-'}`);
  const path = `${paths.servers(scope)}/${chosen.id}`;
  if (follow)
    await followOne(session, { path, show_command: session.commandIn(scope, `servers show ${chosen.id}`), ...wanted });
  else await showOne(session, { path, ...wanted });
}

/** Shows what a server has written. */
async function showOne(session: Session, log: Wanted & { path: string }): Promise<void> {
  const lines = await readLog(session.api, log);
  for (const line of lines) show(session, line);
  if (mayHaveEarlierLines(lines, log)) session.output.say(EARLIER_LINES);
}

/** Shows all lines of a server until it has ended. Throws Failure if it crashed. */
async function followOne(
  session: Session,
  { show_command, since = new Date(0), ...log }: Wanted & { path: string; show_command: string },
): Promise<void> {
  const end = await followLog(session.api, { ...log, since, onLine: (line) => show(session, line) });
  session.output.say(end.summary);
  if (end.has_crashed) throw new Failure(`The server crashed. For more: ${show_command}`);
}

async function showAll(session: Session, scope: Scope, wanted: Wanted): Promise<void> {
  const { lines, read_count, is_cut, has_earlier_lines } = await readServerLogs({ session, scope, ...wanted });
  for (const { server_id, ...line } of lines) show(session, line, server_id);
  if (has_earlier_lines) session.output.say(EARLIER_LINES);
  if (is_cut) {
    session.output.say(
      `These are the lines of ${read_count} servers. For another one: --server ID, from "${session.commandIn(scope, 'servers --all')}"`,
    );
  }
}

/** Shows the lines of all servers that run and that start later, until ctrl-C. Throws Failure once it may not read them. */
async function followAll(session: Session, scope: Scope, wanted: Wanted): Promise<void> {
  const { say } = session.output;
  await followServerLogs({
    session,
    scope,
    ...wanted,
    with_running: true,
    signal: new AbortController().signal,
    onLine: ({ server_id, ...line }) => show(session, line, server_id),
    onEnd: ({ server_id, summary, has_crashed }) =>
      say(`${shortServerId(server_id)} ${has_crashed ? '✗ ' : ''}${summary}`),
    onSkipped: (server_id, reason) => say(`The log of ${server_id} is not followed: ${reason}`),
  });
}

async function chooseServer(
  session: Session,
  scope: Scope,
  { given, server, lobby }: { given: string | undefined; server: string | undefined; lobby: string | undefined },
): Promise<Server> {
  const [newest] = await readNewestServers(session, scope);
  if (!newest) throw new Failure('No server has run here yet. A find starts one.', EXIT.not_found);
  if ([given, server, lobby].every((one) => one === undefined)) return newest;
  const whole = lobby === undefined && (await readServer(session, scope, server ?? given ?? ''));
  if (whole) return whole;
  const { servers } = await readAllServers(session, scope);
  const ofLobbies = servers.filter(({ tags }) => tags.lobby_id !== undefined);
  const lobbyOf = ({ tags }: Server) => tags.lobby_id ?? '';
  const by_lobby = { what: 'lobby', idOf: lobbyOf, list_command: session.commandIn(scope, 'lobbies') };
  const by_server = {
    what: 'server',
    idOf: ({ id }: Server) => id,
    list_command: session.commandIn(scope, 'servers --all'),
  };
  if (lobby !== undefined) return pick(ofLobbies, lobby, by_lobby);
  if (server !== undefined) return pick(servers, server, by_server);
  const text = (given ?? '').toLowerCase();
  const is_lobby = ofLobbies.some((one) => lobbyOf(one).startsWith(text) || lobbyOf(one).endsWith(text));
  return is_lobby ? pick(ofLobbies, text, by_lobby) : pick(servers, text, { ...by_server, what: 'server or lobby' });
}

/** Shows a line; with the server that wrote it, if lines of several servers are shown. */
function show(session: Session, { ts, stream, text }: LogLine, server_id?: string): void {
  if (session.is_json) session.output.json({ ts, stream, line: text, ...(server_id && { server_id }) });
  else session.output.line(describeLine({ ts, stream, text }, server_id));
}

/** Returns a line with its time in UTC, and with the name of its server if one is given. */
export function describeLine({ ts, stream, text }: LogLine, server_id?: string): string {
  const name = server_id === undefined ? '' : `${shortServerId(server_id)} `;
  return `${ts.slice(11, 23)} ${name}${stream === 'std_err' ? '! ' : '  '}${text}`;
}

/** Returns the end of a server's id, which tells the servers of a log apart. */
export function shortServerId(server_id: string): string {
  return server_id.slice(-4);
}

/** A text that begins with a date. Any number is a year to `Date`. */
const BEGINS_WITH_DATE = /^\d{4}-\d\d-\d\d/;
/** A date with a time, but without an offset from UTC. */
const WITHOUT_OFFSET = /^\d{4}-\d\d-\d\d[Tt ][\d:.]+$/;

/** Reads `10m` as ten minutes ago, and a text that begins with a date as a moment; without an offset, in UTC, as lines have. */
function readSince(text: string): Date {
  const ago_ms = parseDuration(text);
  const moment = ago_ms === undefined ? readMoment(text) : new Date(Date.now() - ago_ms);
  if (Number.isNaN(moment.getTime())) {
    throw new Failure(
      `--since is "${text}": write 30s, 10m, 2h, 1d or a time such as 2026-11-23T12:00:00Z.`,
      EXIT.wrong_use,
    );
  }
  return moment;
}

function readMoment(text: string): Date {
  if (WITHOUT_OFFSET.test(text)) return new Date(`${text}Z`);
  return new Date(BEGINS_WITH_DATE.test(text) ? text : '');
}
