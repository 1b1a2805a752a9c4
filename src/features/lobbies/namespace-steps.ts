import { isLocked, isUnavailable } from '../../platform/database/failures.ts';
import type { Events, LobbiesStep } from '../../platform/events.ts';

/**
 * Runs a step of the background work for the lobbies of each namespace in turn. A namespace for which it fails is reported,
 * and does not keep the step from the others. Throws while the database cannot be used, because then it would fail for all.
 */
export async function forEachNamespace<Lobby extends { namespace_id: string }>(
  { events, step }: { events: Events; step: LobbiesStep },
  lobbies: Lobby[],
  work: (namespace_id: string, lobbies_there: Lobby[]) => Promise<void>,
): Promise<void> {
  for (const [namespace_id, lobbies_there] of Map.groupBy(lobbies, (lobby) => lobby.namespace_id)) {
    try {
      await work(namespace_id, lobbies_there);
    } catch (cause) {
      if (!isLocked(cause) && isUnavailable(cause)) throw cause;
      events.emit({ event: 'lobbies_step_failed', step, namespace_id, cause });
    }
  }
}
