import { forEachUntilFailure } from '../shared/at-once.ts';
import { Failure, isFinal } from '../terminal/failure.ts';
import { paths } from './paths.ts';
import { followLog, type LogLine, mayHaveEarlierLines, readLog, type ServerEnd } from './server-log.ts';
import { readNewestServers, type Server } from './servers.ts';
import type { Scope, Session } from './session.ts';

/** Each followed server holds three long polls. */
const FOLLOWED_MAX = 30;
const READ_MAX = 30;
const READ_AT_ONCE = 4;
const PAUSE_AFTER_FAILURE_MS = 1_000;

/** A line of one of the servers of a namespace. */
export interface NamespaceLine extends LogLine {
  server_id: string;
}

interface NamespaceLogQuery {
  session: Session;
  scope: Scope;
  grep?: string | undefined;
  since?: Date | undefined;
}

interface LogsToFollow extends NamespaceLogQuery {
  /** Whether servers that run at the beginning are followed too, not only those that start later. */
  with_running: boolean;
  signal: AbortSignal;
  onLine: (line: NamespaceLine) => void;
  onEnd: (end: ServerEnd & { server_id: string }) => void;
  /** Called with the reason when a server is not followed. */
  onSkipped: (server_id: string, reason: string) => void;
}

interface NamespaceLines {
  lines: NamespaceLine[];
  /** How many servers were read, also those without a line. */
  read_count: number;
  /** Whether there are servers whose lines were not read. */
  is_cut: boolean;
  /** Whether a server may have earlier lines, which were not read. */
  has_earlier_lines: boolean;
}

/**
 * Returns the lines of at most 30 servers of a namespace, in order of time. Servers that run are chosen first, then the
 * newest that have ended.
 */
export async function readServerLogs({ session, scope, ...wanted }: NamespaceLogQuery): Promise<NamespaceLines> {
  const servers = await readNewestServers(session, scope);
  const isRunning = ({ destroyed_at }: Server) => destroyed_at === undefined;
  const running_first = [...servers.filter(isRunning), ...servers.filter((server) => !isRunning(server))];
  const to_read = running_first.slice(0, READ_MAX);
  const lines: NamespaceLine[] = [];
  let has_earlier_lines = false;
  await forEachUntilFailure(to_read, READ_AT_ONCE, async ({ id: server_id }) => {
    const read = await readLog(session.api, { ...wanted, path: `${paths.servers(scope)}/${server_id}` });
    lines.push(...read.map((line) => ({ ...line, server_id })));
    has_earlier_lines ||= mayHaveEarlierLines(read, wanted);
  });
  const in_order = lines.toSorted((one, other) => one.ts.localeCompare(other.ts));
  const read_count = to_read.length;
  return { lines: in_order, read_count, is_cut: read_count < servers.length, has_earlier_lines };
}

/**
 * Follows every server that starts in a namespace, until the signal is aborted. Throws Failure if the token is not accepted
 * any more, or the namespace is gone.
 */
export async function followServerLogs(wanted: LogsToFollow): Promise<void> {
  const { session, scope, grep, with_running, signal, onLine, onEnd, onSkipped } = wanted;
  const known = await readNewestServers(session, scope);
  const isPassedOver = ({ destroyed_at }: Server) => !with_running || destroyed_at !== undefined;
  const seen = new Set(known.filter(isPassedOver).map(({ id }) => id));
  // A server that starts later is shown from its first line.
  const since = wanted.since ?? new Date(0);
  const following = new Set<Promise<void>>();

  async function follow(server_id: string): Promise<void> {
    try {
      const path = `${paths.servers(scope)}/${server_id}`;
      const onOwnLine = (line: LogLine) => onLine({ ...line, server_id });
      onEnd({ ...(await followLog(session.api, { path, grep, since, signal, onLine: onOwnLine })), server_id });
    } catch (error) {
      if (!signal.aborted) onSkipped(server_id, error instanceof Error ? error.message : String(error));
    }
  }

  for (let index: string | undefined; !signal.aborted; ) {
    try {
      // The index changes whenever a server is created or ends.
      const query = { count: '0', watch_index: index };
      const { watch } = await session.api.get<{ watch: { index: string } }>(paths.serverRows(scope), { query, signal });
      ({ index } = watch);
      const fresh = (await readNewestServers(session, scope)).filter(({ id }) => !seen.has(id));
      for (const { id } of fresh) {
        seen.add(id);
        if (following.size >= FOLLOWED_MAX) {
          onSkipped(id, `${FOLLOWED_MAX} others are followed already`);
          continue;
        }
        const followed = follow(id).finally(() => void following.delete(followed));
        following.add(followed);
      }
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof Failure) || isFinal(error)) throw error;
      await Bun.sleep(PAUSE_AFTER_FAILURE_MS);
    }
  }
  await Promise.all(following);
}
