import { type AbandonedDependencies, removeAbandoned } from './abandoned.ts';
import type { Ending } from './ending.ts';
import type { Runtime } from './runtimes/runtime.ts';
import type { ServerSteps } from './server-steps.ts';
import { selectOnMachine } from './store.ts';

interface LeftoversDependencies extends AbandonedDependencies {
  machine: { node_id: string };
  runtime: Pick<Runtime, 'list' | 'other_machines'>;
  ending: Pick<Ending, 'endLeftovers'>;
  steps: Pick<ServerSteps, 'serverIds'>;
}

/**
 * Removes what is left of servers of this machine that have ended or have no row, because the service was killed between
 * two steps; then the pods of ended servers whose machine does not remove them.
 */
export async function removeLeftovers(dependencies: LeftoversDependencies): Promise<void> {
  const { database, machine, runtime, ending, steps } = dependencies;
  const selectIds = async () =>
    new Set((await selectOnMachine(database.queries, machine.node_id)).map(({ server_id }) => server_id));
  // A server that ends while it is listed is no leftover, but has neither a row nor a step afterwards.
  const on_machine_before = await selectIds();
  const under_way_before = steps.serverIds();
  // Lists before the second query: a server has a row before it has files, so without a row it is a leftover.
  const listed = await runtime.list();
  const not_leftovers = [on_machine_before, under_way_before, await selectIds(), steps.serverIds()];
  try {
    await ending.endLeftovers(listed.filter(({ server_id }) => !not_leftovers.some((ids) => ids.has(server_id))));
  } finally {
    await removeAbandoned(dependencies);
  }
}
