import { LRUCache } from 'lru-cache';
import type { Builds } from '../../builds/builds.ts';
import type { Machines } from '../../machines/machines.ts';
import type { WaitReason } from '../tables.ts';
import type { NextRounds } from './next-rounds.ts';
import type { WaitingRow } from './waiting-store.ts';

/** How long a full machine waits before it takes a server. An emptier one waits less, so that it comes first. */
const FULL_WAITS_MS = 100;
/** How much longer a machine waits that would have to unpack the build first. */
const UNPACKING_WAITS_MS = 20;
/** How long a server has to wait until this machine says why, while another one may take it. */
const EXPLAINED_AFTER_MS = 1_000;
const SEEN_MAX = 10_000;

interface OtherMachinesDependencies {
  machines: Pick<Machines, 'isOtherSeenTakingServers'>;
  builds: Pick<Builds, 'isUnpacked'>;
  next_rounds: Pick<NextRounds, 'requestIn'>;
}

/** Returns how long a machine waits before it takes a server that another machine may take. */
export function pauseBeforeTaking({ used, is_unpacked }: { used: number; is_unpacked: boolean }): number {
  return Math.min(used, 1) * FULL_WAITS_MS + (is_unpacked ? 0 : UNPACKING_WAITS_MS);
}

/** Chooses what this machine leaves to other machines of its datacenter for a moment. A machine that is alone leaves nothing. */
export class OtherMachines {
  /** Since when this machine has seen servers wait, in the time of `performance.now()`. */
  readonly #seen_since = new LRUCache<string, number>({ max: SEEN_MAX });

  constructor(private readonly dependencies: OtherMachinesDependencies) {}

  /**
   * Returns the namespaces whose servers this machine takes now. It leaves the others to a better machine for up to 120 ms.
   * `used` is the share of its room that is used.
   */
  async selectDueToTake(namespaces: WaitingRow[], used: number): Promise<WaitingRow[]> {
    const { machines, builds, next_rounds } = this.dependencies;
    if (!machines.isOtherSeenTakingServers()) return namespaces;
    const due: WaitingRow[] = [];
    let again_in_ms = Number.POSITIVE_INFINITY;
    for (const namespace of namespaces) {
      const waited_ms = this.#timeSeen(namespace);
      const wait_ms = pauseBeforeTaking({ used, is_unpacked: await builds.isUnpacked(namespace.build_id) });
      if (waited_ms >= wait_ms) due.push(namespace);
      else again_in_ms = Math.min(again_in_ms, wait_ms - waited_ms);
    }
    if (Number.isFinite(again_in_ms)) next_rounds.requestIn(again_in_ms);
    return due;
  }

  /**
   * Returns the namespaces whose first server no other machine takes soon, so that this one says why it waits. Another
   * machine may take a server at once that this one cannot take.
   */
  selectDueForReason(namespaces: WaitingRow[], wait_reasons: ReadonlyMap<string, WaitReason>): WaitingRow[] {
    const { machines, next_rounds } = this.dependencies;
    if (!machines.isOtherSeenTakingServers()) return namespaces;
    const isDue = (namespace: WaitingRow) => this.#timeSeen(namespace) >= EXPLAINED_AFTER_MS;
    const later = namespaces.filter((namespace) => wait_reasons.has(namespace.namespace_id) && !isDue(namespace));
    if (later.length > 0) {
      const times_seen = later.map((namespace) => this.#timeSeen(namespace));
      next_rounds.requestIn(EXPLAINED_AFTER_MS - Math.max(...times_seen));
    }
    return namespaces.filter(isDue);
  }

  /** Returns for how long this machine has seen the first server of a namespace wait, in milliseconds. */
  #timeSeen({ server_id }: WaitingRow): number {
    const now = performance.now();
    const since = this.#seen_since.get(server_id) ?? now;
    this.#seen_since.set(server_id, since);
    return now - since;
  }
}
