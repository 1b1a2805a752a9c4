import { LRUCache } from 'lru-cache';
import { isLocked, isUnavailable, rootMessageOf } from '../../platform/database/failures.ts';
import type { Events, LobbiesStep } from '../../platform/events.ts';

/** A failure that lasts is reported at this interval. */
const REPORTED_EVERY_MS = 10 * 60_000;
const REPORTED_MAX = 10_000;

export type NamespaceSteps = ReturnType<typeof createNamespaceSteps>;

/** Creates the runner of steps that failures of single namespaces do not stop. It remembers which failures it has reported. */
export function createNamespaceSteps(events: Events) {
  /** The message of the failure of each step and namespace. */
  const reported = new LRUCache<string, string>({ max: REPORTED_MAX, ttl: REPORTED_EVERY_MS });

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
        const key = `${step} ${namespace_id}`;
        try {
          await work(namespace_id, lobbies_there);
          reported.delete(key);
        } catch (cause) {
          if (!isLocked(cause) && isUnavailable(cause)) throw cause;
          const message = rootMessageOf(cause);
          if (reported.get(key) === message) continue;
          reported.set(key, message);
          events.emit({ event: 'lobbies_step_failed', step, namespace_id, cause });
        }
      }
    },
  };
}
