import { rm } from 'node:fs/promises';
import { type Config, readConfig } from '../../src/config.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { keepEvents } from '../../src/platform/kept-events.ts';
import { openService, type Service } from '../../src/service.ts';
import { type Api, createApi } from './api.ts';
import { createTestClock } from './clock.ts';
import { openTestDatabase } from './database.ts';
import { makeDataDirectory, type TestService } from './service.ts';
import { claimTestPorts } from './test-ports.ts';

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
  const database = await openTestDatabase();
  const data_directory = await makeDataDirectory();
  const ports = await claimTestPorts();
  const own = {
    MUSTER_DATA: data_directory,
    ...ports.settings,
    MUSTER_DEMO: 'off',
    MUSTER_LIMITS_SCALE: '1000000',
  };
  const config: Config = readConfig({ ...own, ...settings });
  const clock = createTestClock();
  const events: ServiceEvent[] = [];
  const api: Api = createApi(config.public_url);
  let service: Service | undefined;

  async function open(): Promise<Service> {
    events.length = 0;
    const emit = (event: ServiceEvent) => void events.push(event);
    service = await openService(config, { clock, events: keepEvents({ emit }), database_address: database.address });
    return service;
  }

  async function close(): Promise<void> {
    await service?.[Symbol.asyncDispose]();
    service = undefined;
  }

  const { administrator_token } = (await open()).bootstrap_result;
  return {
    config,
    database_address: database.address,
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
    async [Symbol.asyncDispose]() {
      await (service ?? (await open())).stopServers();
      await close();
      await rm(data_directory, { recursive: true, force: true });
      ports[Symbol.dispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}
