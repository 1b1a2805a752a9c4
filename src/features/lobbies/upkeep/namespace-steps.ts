import { isLocked, isUnavailable, rootMessageOf } from '../../../platform/database/failures.ts';
import type { Events, LobbiesStep } from '../../../platform/events.ts';
import { Reports } from '../../../platform/reports.ts';

export type NamespaceSteps = ReturnType<typeof createNamespaceSteps>;

/**
 * Creates the runner of steps for each namespace: a failure in one does not stop the others. It remembers which
 * failures it has reported.
 */
export function createNamespaceSteps(events: Events) {
  const reports = new Reports();

  return {
    /**
     * Runs a step of the background work for the lobbies of each namespace in turn. A namespace for which it fails is reported,
     * and does not keep the step from the others. Throws while the database cannot be used, because then it would fail for all.
     */
    async forEachNamespace<Lobby extends { namespace_id: string }>(
      step: LobbiesStep,
      lobbies: Lobby[],
      work: (namespace_id: string, lobbies_there: Lobby[]) => Promise<void>,
    ): Promise<void> {
      for (const [namespace_id, lobbies_there] of Map.groupBy(lobbies, (lobby) => lobby.namespace_id)) {
        const subject = `${step} ${namespace_id}`;
        try {
          await work(namespace_id, lobbies_there);
          reports.forget(subject);
        } catch (cause) {
          if (!isLocked(cause) && isUnavailable(cause)) throw cause;
          if (!reports.noteIfDue(subject, rootMessageOf(cause))) continue;
          events.emit({ event: 'lobbies_step_failed', step, namespace_id, cause });
        }
      }
    },
  };
}
