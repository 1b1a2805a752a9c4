import { EXIT, Failure } from '../../terminal/failure.ts';
import { counted } from '../../terminal/terminal.ts';
import { LONG_ATTEMPTS_MAX } from '../api-caller.ts';
import { paths } from '../paths.ts';
import type { Scope, Session } from '../session.ts';

/** How many lobbies of other versions than the live one run in a namespace, and with how many players. */
interface OldLobbies {
  lobbies: number;
  players: number;
}

interface LobbySummary {
  summary: { versions: Record<string, OldLobbies> };
  watch: { index: string };
}

/** Counts the running lobbies of a namespace that are not of a version. */
export async function countOldLobbies(session: Session, scope: Scope, version_id: string): Promise<OldLobbies> {
  return count(await readSummary(session, scope), version_id);
}

/** Returns a sentence about the lobbies that a switch of the version left. */
export function describeOldLobbies({ lobbies, players }: OldLobbies): string {
  if (lobbies === 0) return 'No lobby runs on another version.';
  const what = `${counted(lobbies, 'lobby', 'lobbies')}, ${counted(players, 'player', 'players')}`;
  return `On other versions until they end: ${what}.`;
}

/** Waits until a namespace has only lobbies of one version. Throws Failure if that takes longer than `within_ms`. */
export async function waitForOldLobbies(
  session: Session,
  scope: Scope,
  { version_id, within_ms }: { version_id: string; within_ms: number },
): Promise<void> {
  const deadline = AbortSignal.timeout(within_ms);
  let left: OldLobbies | undefined;
  try {
    for (let index: string | undefined; left?.lobbies !== 0; ) {
      const body = await readSummary(session, scope, { index, signal: deadline });
      const now = count(body, version_id);
      if (left && now.lobbies !== left.lobbies) session.output.say(describeOldLobbies(now));
      left = now;
      ({ index } = body.watch);
    }
  } catch (error) {
    if (!deadline.aborted) throw error;
    const what = left ? describeOldLobbies(left) : 'The other versions may have lobbies.';
    throw new Failure(
      `${what} The new version is live, but lobbies of other versions did not end in time.`,
      EXIT.timed_out,
    );
  }
}

interface SummaryToRead {
  /** Makes the read wait for a change after this index. */
  index?: string | undefined;
  signal?: AbortSignal;
}

async function readSummary({ api }: Session, scope: Scope, { index, signal }: SummaryToRead = {}) {
  const query = { count: '0', watch_index: index };
  const attempts_max = index === undefined ? undefined : LONG_ATTEMPTS_MAX;
  return await api.get<LobbySummary>(paths.lobbyRows(scope), { query, signal, attempts_max });
}

function count({ summary }: LobbySummary, version_id: string): OldLobbies {
  const others = Object.entries(summary.versions).filter(([id]) => id !== version_id);
  return {
    lobbies: others.reduce((sum, [, { lobbies }]) => sum + lobbies, 0),
    players: others.reduce((sum, [, { players }]) => sum + players, 0),
  };
}
