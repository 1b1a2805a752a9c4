import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { forEachAtOnce } from '../../platform/pacing.ts';
import type { Machines } from '../machines/machines.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';

const AT_ONCE_MAX = 8;

export interface AbandonedDependencies {
  database: Database;
  events: Events;
  runtime: Pick<Runtime, 'other_machines'>;
  machines: Pick<Machines, 'machinesThatRemoveNoPods'>;
}

/**
 * Removes the pods of ended servers whose machine no longer removes them itself. Every machine of the cluster does this,
 * and repeating it is harmless. Servers that have not ended stay: a machine that has come back may have started them.
 */
export async function removeAbandoned({ database, events, runtime, machines }: AbandonedDependencies): Promise<void> {
  const { other_machines } = runtime;
  const machine_ids = machines.machinesThatRemoveNoPods();
  if (!other_machines || machine_ids.length === 0) return;
  const listed = await other_machines.list(machine_ids);
  const open = await store.selectNotEnded(database.queries, listed);
  const left = listed.filter((server_id) => !open.has(server_id));
  await forEachAtOnce(left, AT_ONCE_MAX, async (server_id) => {
    await other_machines.remove(server_id);
    events.emit({ event: 'server_leftover_removed', server_id });
  });
}
