import { ExponentialBackoff, handleWhen, retry } from 'cockatiel';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isUnavailable } from '../../platform/database/failures.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { Machines } from '../machines/machines.ts';
import { topics } from '../topics.ts';
import { destroyAllOf, destroyWaiting } from './destroy-store.ts';
import { isAnyEndingUnplaced } from './placement/waiting-store.ts';
import { selectOnMachine } from './store.ts';

/** Time between asking and killing when ctrl-C ends all servers of a machine. */
const STOP_ALL_WITHIN_MS = 5_000;

/** Repeats a step while the database cannot be used, for about 5 s. */
const retryWhileUnavailable = retry(handleWhen(isUnavailable), {
  maxAttempts: 8,
  backoff: new ExponentialBackoff({ initialDelay: 100, maxDelay: 1_000 }),
});

export interface StopAllDependencies {
  database: Database;
  clock: Clock;
  watch: Watch;
  machines: Pick<Machines, 'isOtherTakingServers'>;
}

/** A machine and its datacenter. */
interface MachineIds {
  node_id: string;
  datacenter_id: string;
}

/** Creates the use cases that end the servers of a machine, and the servers that wait for a machine. */
export function createStopAll({ database, clock, watch, machines }: StopAllDependencies) {
  /** Ends the servers that wait for a machine of a datacenter, unless another machine takes them. */
  async function endWaitingServers(datacenter_id: string): Promise<void> {
    const endSome = () =>
      database.transact(async (tx) => {
        if (await machines.isOtherTakingServers(tx)) return false;
        return await destroyWaiting(tx, datacenter_id, clock.now());
      });
    while (await retryWhileUnavailable.execute(endSome));
  }

  /**
   * Ends all servers of a machine, and those that wait for it because no other machine of its datacenter takes servers.
   * Waits a few seconds at most until they have ended.
   */
  async function stopAllOf({ node_id, datacenter_id }: MachineIds): Promise<void> {
    const now = clock.now();
    const deadline = after(now, STOP_ALL_WITHIN_MS);
    await retryWhileUnavailable.execute(() =>
      database.transact((tx) => destroyAllOf(tx, node_id, { now, kill_at: deadline })),
    );
    await endWaitingServers(datacenter_id);
    const haveEnded = async () => {
      const on_machine = await selectOnMachine(database.queries, node_id);
      // Servers that the machine has taken since then do not count.
      const is_any_left = on_machine.some(({ destroyed_at }) => destroyed_at !== null);
      return is_any_left || (await isAnyEndingUnplaced(database.queries, datacenter_id)) ? undefined : true;
    };
    const timeout_ms = 2 * STOP_ALL_WITHIN_MS;
    const wait_options = { signal: AbortSignal.timeout(timeout_ms), caller_key: 'stop', timeout_ms };
    const are_gone = await watch.until(topics.serversEnding(), haveEnded, wait_options);
    if (!are_gone) throw new Error('some game servers still run; the next start of the service ends them');
  }

  return { endWaitingServers, stopAllOf };
}
