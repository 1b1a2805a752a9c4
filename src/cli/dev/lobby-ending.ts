import { counted } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import { pause } from '../pause.ts';
import { closeLobby, endLobby } from '../project/lobby-end.ts';
import type { Scope, Session } from '../session.ts';

/** How long players can read that their lobby is closed before it ends. */
const NOTICE_MS = 2_000;

interface RunningLobby {
  lobby_id: string;
  is_outdated: boolean;
  total_player_count: number;
}

/** How many lobbies end now, and how many later. */
export interface EndingLobbies {
  /** How many ended at once, because they had no players. */
  ended_count: number;
  /** How many were closed, and end when their players have had time to read it. */
  closed_count: number;
}

interface LobbyEndingOptions {
  /** Ends the notice at once. Closed lobbies then end with the service, or stay closed on a service that runs on. */
  signal: AbortSignal;
  /** Called when lobbies that were closed have ended, with their number. */
  onEnded: (count: number) => void;
  onError: (error: unknown) => void;
}

/**
 * Ends lobbies of a namespace. Lobbies with players are closed first: a client that watches its lobby sees `is_closed`, and
 * then the error of its end.
 */
export class LobbyEnding {
  /** Lobbies that are being closed, or that end when their players have had time to read it. */
  readonly #closed = new Set<string>();
  readonly #waits = new Set<Promise<void>>();

  constructor(
    private readonly session: Pick<Session, 'api'>,
    private readonly scope: Scope,
    private readonly options: LobbyEndingOptions,
  ) {}

  /** Ends lobbies. If the service refuses some, ends all others, then throws the first refusal; a later call tries again. */
  async end(isWanted: (lobby: RunningLobby) => boolean): Promise<EndingLobbies> {
    const { lobbies } = await this.session.api.get<{ lobbies: RunningLobby[] }>(paths.runningLobbies(this.scope));
    const wanted = lobbies.filter((lobby) => isWanted(lobby) && !this.#closed.has(lobby.lobby_id));
    const played = wanted.filter(({ total_player_count }) => total_player_count > 0);
    const empty = wanted.filter((lobby) => !played.includes(lobby));
    const [ends, closes] = await Promise.all([
      Promise.allSettled(empty.map(({ lobby_id }) => endLobby(this.session, this.scope, lobby_id))),
      Promise.allSettled(played.map(({ lobby_id }) => this.#close(lobby_id))),
    ]);
    const closed = resultsOf(closes);
    if (closed.length > 0) {
      const wait = this.#endLater(closed)
        .catch(this.options.onError)
        .finally(() => void this.#waits.delete(wait));
      this.#waits.add(wait);
    }
    throwFirst([...ends, ...closes]);
    return { ended_count: empty.length, closed_count: played.length };
  }

  /** Waits until all lobbies that were closed have ended. */
  async waitForEnds(): Promise<void> {
    await Promise.all(this.#waits);
  }

  /** Closes a lobby. Returns its id. */
  async #close(lobby_id: string): Promise<string> {
    this.#closed.add(lobby_id);
    try {
      await closeLobby(this.session, this.scope, lobby_id);
    } catch (error) {
      this.#closed.delete(lobby_id);
      throw error;
    }
    return lobby_id;
  }

  async #endLater(lobby_ids: string[]): Promise<void> {
    const { signal, onEnded } = this.options;
    await pause(NOTICE_MS, signal);
    if (signal.aborted) return;
    const ends = await Promise.allSettled(lobby_ids.map((lobby_id) => this.#endClosed(lobby_id)));
    const ended_count = resultsOf(ends).length;
    if (ended_count > 0) onEnded(ended_count);
    throwFirst(ends);
  }

  async #endClosed(lobby_id: string): Promise<void> {
    try {
      await endLobby(this.session, this.scope, lobby_id);
    } finally {
      this.#closed.delete(lobby_id);
    }
  }
}

function resultsOf<Result>(settled: PromiseSettledResult<Result>[]): Result[] {
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

function throwFirst(settled: PromiseSettledResult<unknown>[]): void {
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Returns words about lobbies that end, such as `2 lobbies ended, 1 is closed and ends in 2 s`. */
export function describeEnding({ ended_count, closed_count }: EndingLobbies): string {
  const count = (lobbies: number) => counted(lobbies, 'lobby', 'lobbies');
  const ended = ended_count > 0 || closed_count === 0 ? [`${count(ended_count)} ended`] : [];
  const be = closed_count === 1 ? 'is closed and ends' : 'are closed and end';
  const closed = closed_count > 0 ? [`${count(closed_count)} with players ${be} in ${NOTICE_MS / 1_000} s`] : [];
  return [...ended, ...closed].join(', ');
}
