import type { Clock } from '../../platform/clock.ts';
import type { Ending } from './ending.ts';
import { takeInTurns } from './placement/fair-shares.ts';
import type { ServerSteps } from './server-steps.ts';
import type { PlacedServer } from './tables.ts';

/** Maximum number of servers to end in one round. */
const ENDS_AT_ONCE_MAX = 100;
/** Time before a server that could not be ended is tried again. Until then it does not slow down the rounds of others. */
const END_AGAIN_AFTER_MS = 2_000;
/** Time after which the next round of kills begins, although the one before goes on. */
const KILL_ROUND_MS = 1_000;

interface KillRoundsDependencies {
  clock: Clock;
  ending: Pick<Ending, 'kill' | 'finish'>;
  steps: ServerSteps;
  /** Requests the next steps of servers, now or after a time. */
  wake(): void;
  wakeIn(ms: number): void;
}

/**
 * Ends servers of this machine in rounds: kills those of a round together, and finishes each as soon as it is gone, so that
 * none of them delays another. A round that takes long, because of a server that does not die, goes on beside the next
 * ones.
 */
export class KillRounds {
  /** The round that has just begun. */
  #newest_round: Promise<void> | undefined;
  /** When to try again to end the servers that have not ended, in the time of `performance.now()`. */
  readonly #end_again_at = new Map<string, number>();
  /** The time of a kill for which a wake was requested. */
  #awaited_kill = 0;

  constructor(private readonly dependencies: KillRoundsDependencies) {}

  /** Requests a wake when the next kill timeout of these servers is over, unless that was done. */
  awaitNext(servers: PlacedServer[]): void {
    const { clock, wakeIn } = this.dependencies;
    const now = clock.now().getTime();
    const later = servers.flatMap(({ kill_at }) => (kill_at && kill_at.getTime() > now ? kill_at.getTime() : []));
    const next = Math.min(...later);
    if (later.length === 0 || next === this.#awaited_kill) return;
    this.#awaited_kill = next;
    wakeIn(next - now + 1);
  }

  /** Returns whether a server is not to be ended now, because a moment ago that failed. */
  isPostponed(server_id: string): boolean {
    return (this.#end_again_at.get(server_id) ?? 0) > performance.now();
  }

  /**
   * Begins a round with some of these servers, in turns of their namespaces. Returns how many: none if a round has just
   * begun, so that they wait for the next one.
   */
  begin(to_end: PlacedServer[]): number {
    if (this.#newest_round || to_end.length === 0) return 0;
    const { ending, steps, wake } = this.dependencies;
    const round = takeInTurns(to_end, ENDS_AT_ONCE_MAX);
    const listener = {
      onGone: (end: PlacedServer) => this.#finish(end),
      onFailure: (server: PlacedServer) => this.#endKill(server),
    };
    const kill = ending.kill(round, listener).finally(wake);
    steps.beginTogether(round, kill);
    this.#newest_round = Promise.race([kill, Bun.sleep(KILL_ROUND_MS)]).finally(() => {
      this.#newest_round = undefined;
      wake();
    });
    return round.length;
  }

  /** Forgets the servers that are not to be kept. */
  keepOnly(isKept: (server_id: string) => boolean): void {
    for (const server_id of this.#end_again_at.keys()) if (!isKept(server_id)) this.#end_again_at.delete(server_id);
  }

  /** Begins the step after the kill of a server: records its end and removes its files. */
  #finish(end: PlacedServer): void {
    const { ending, steps, wake } = this.dependencies;
    this.#endKill(end);
    const finish = () => ending.finish(end).finally(() => this.#postpone(end));
    steps.begin(end, 'finish', finish, wake);
  }

  #endKill(server: PlacedServer): void {
    this.dependencies.steps.end(server);
    this.#postpone(server);
  }

  /** Sets the earliest time at which a server is ended again, in case it has not ended. */
  #postpone({ server_id }: PlacedServer): void {
    this.#end_again_at.set(server_id, performance.now() + END_AGAIN_AFTER_MS);
  }
}
