import type { Tx } from '../../platform/database/database.ts';
import { setEnded } from './ends-store.ts';
import { planRestart } from './restarts.ts';
import { selectOnMachine } from './store.ts';

/** Records that all servers of a machine have ended with it, and creates their restarts. Returns how many have ended. */
export async function endWithMachine(
  tx: Tx,
  node_id: string,
  { failure, now }: { failure: string; now: Date },
): Promise<number> {
  const lost = { exit_code: null, exit_signal: null, failure, has_lost_machine: true };
  const servers = (await selectOnMachine(tx, node_id)).map((server) => ({ ...server, ...lost }));
  const ends = servers.map((server) => ({ ...server, restart: planRestart(server, now) }));
  if (ends.length > 0) await setEnded(tx, ends, now);
  return ends.length;
}
