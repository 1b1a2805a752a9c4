import { rm } from 'node:fs/promises';
import type { ServiceEvent } from '../../src/platform/events.ts';
import type { Service } from '../../src/service.ts';
import { type Api, createApi } from './api.ts';
import { createTestClock } from './clock.ts';
import { openTestDatabase } from './database/database.ts';
import { claimTestPorts } from './network/test-ports.ts';
import { makeDataDirectory, openServiceOfTest, readTestConfig, type TestService } from './service.ts';

/**
 * A service that can be closed and opened again on one database, directory and port, while its game servers continue.
 */
export interface RestartableService extends Omit<TestService, 'service'> {
  /** What is open now. */
  service(): Service;
  /** Closes it without ending its game servers. */
  close(): Promise<void>;
  /** Opens it again. Its list of events starts empty. */
  open(): Promise<void>;
}

/** Opens such a service. Settings have their names in the environment. Disposing of it removes everything. */
export async function openRestartableService(settings: Record<string, string> = {}): Promise<RestartableService> {
  await using opened = new AsyncDisposableStack();
  const { address: database_address } = opened.use(await openTestDatabase());
  const ports = opened.use(await claimTestPorts());
  const data_directory = await makeDataDirectory();
  opened.defer(() => rm(data_directory, { recursive: true, force: true }));
  const config = readTestConfig({ MUSTER_DATA: data_directory, ...ports.settings, ...settings });
  const clock = createTestClock();
  const events: ServiceEvent[] = [];
  const api: Api = createApi(config.public_url);
  let service: Service | undefined;

  async function open(): Promise<Service> {
    events.length = 0;
    service = await openServiceOfTest(config, { clock, events, database_address });
    return service;
  }

  async function close(): Promise<void> {
    await service?.[Symbol.asyncDispose]();
    service = undefined;
  }

  const { administrator_token } = (await open()).bootstrap_result;
  opened.defer(async () => {
    await (service ?? (await open())).stopServers();
    await close();
  });
  const everything = opened.move();
  return {
    config,
    database_address,
    api,
    administrator_token,
    clock,
    events,
    service() {
      if (!service) throw new Error('the service is closed');
      return service;
    },
    close,
    open: async () => void (await open()),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
