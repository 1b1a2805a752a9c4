import { join } from 'node:path';
import { ApiCaller } from '../../cli/api-caller.ts';
import { cacheDirectories, ignoreHttpProxy, readThrowawayConfig } from '../../config.ts';
import { openThrowawayPostgres } from '../../platform/database/throwaway.ts';
import { assert } from '../../platform/errors.ts';
import { createLog } from '../../platform/events.ts';
import { keepEvents } from '../../platform/kept-events.ts';
import { hideFromOthers } from '../../platform/system/memory-hiding.ts';
import { openService } from '../../service.ts';
import { stopServers } from '../stop-servers.ts';
import { createMovableClock, openClockPort } from './clock.ts';
import { chooseCacheDirectory, createDatabaseDirectory, removeFiles } from './directories.ts';
import { endProcessesOf } from './leftovers.ts';
import { claimPorts } from './ports.ts';

/** The variables that tests get from their throwaway service. */
export interface TestVariables {
  MUSTER_URL: string;
  MUSTER_TOKEN: string;
  MUSTER_GAME: string;
  MUSTER_NAMESPACE: string;
  MUSTER_TEST_CLOCK: string;
}

/**
 * Serves in a directory until standard input ends, as it does when the `muster test` that started this process ends in any
 * way. Then ends what the tests have left, its game servers and PostgreSQL, and removes the directory. Writes the variables of
 * the tests as a line of JSON.
 */
export async function serveThrowaway([data_directory = '', game_name = 'test']: string[]): Promise<number> {
  const input_ended = Bun.stdin.text();
  // Only the end of standard input ends this service.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  hideFromOthers();
  ignoreHttpProxy();
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeFiles(data_directory));
  const { service_port, clock_port, server_ports } = opened.use(claimPorts());
  const config = readThrowawayConfig({ data_directory, port: service_port, server_ports });
  const events = createLog(config.log);
  const directory = createDatabaseDirectory(data_directory);
  const cache_directory = chooseCacheDirectory(cacheDirectories()) ?? join(data_directory, 'cache');
  const { address } = opened.use(await openThrowawayPostgres({ directory, cache_directory, events }));
  const clock = createMovableClock();
  const service = opened.use(
    await openService(config, { events: keepEvents(events), clock, database_address: address }),
  );
  const { url: clock_url } = opened.use(openClockPort(clock, clock_port));

  const { administrator_token } = service.bootstrap_result;
  const { game_id, namespace_id } = await createGame(new ApiCaller(config.local_url, administrator_token), game_name);
  const variables: TestVariables = {
    MUSTER_URL: config.public_url,
    MUSTER_TOKEN: administrator_token,
    MUSTER_GAME: game_id,
    MUSTER_NAMESPACE: namespace_id,
    MUSTER_TEST_CLOCK: clock_url,
  };
  console.log(JSON.stringify(variables));
  await input_ended;
  await endProcessesOf(variables);
  await stopServers(service, events);
  await opened.disposeAsync();
  await events.flush();
  return 0;
}

async function createGame(api: ApiCaller, display_name: string): Promise<{ game_id: string; namespace_id: string }> {
  const { groups } = await api.get<{ groups: { group_id: string }[] }>('/cloud/games');
  const body = { display_name, developer_group_id: groups[0]?.group_id };
  const { game_id } = await api.call<{ game_id: string }>('POST', '/cloud/games', { body });
  const { game } = await api.get<{ game: { namespaces: { namespace_id: string; name_id: string }[] } }>(
    `/cloud/games/${game_id}`,
  );
  const prod = game.namespaces.find(({ name_id }) => name_id === 'prod');
  assert(prod, 'a game has the namespace prod');
  return { game_id, namespace_id: prod.namespace_id };
}
