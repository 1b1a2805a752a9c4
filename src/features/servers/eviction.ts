import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { handleOf } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';

interface EvictionDependencies {
  events: Events;
  runtime: Runtime;
  /** Where to record the reason; undefined while the database is unavailable, when only the log has it. */
  records?: { database: Database; clock: Clock; machine: { node_id: string } };
}

/** Ends the game servers of this machine that occupy a port of the service. Returns how many ended. */
export async function evictFromPort({ events, runtime, records }: EvictionDependencies, port: number): Promise<number> {
  if (!runtime.findServersOnPort) return 0;
  const servers = records ? await store.selectOnMachine(records.database.queries, records.machine.node_id) : [];
  const server_ids = new Set(servers.map(({ server_id }) => server_id));
  const unknown = (await runtime.list()).filter(({ server_id }) => !server_ids.has(server_id));
  const handles = [...servers.map(handleOf), ...unknown];
  const on_port = await runtime.findServersOnPort(handles, port);
  const failure = `the server took port ${port}, which belongs to the service: listen on the port in PORT_<label> instead`;
  for (const server of servers.filter(({ server_id }) => on_port.has(server_id))) {
    await records?.database.transact((tx) => store.setFailed(tx, server, failure, records.clock.now()));
  }
  const gone = await runtime.kill(handles.filter(({ server_id }) => on_port.has(server_id)));
  for (const server_id of gone) events.emit({ event: 'server_took_port', server_id, port });
  return gone.size;
}
