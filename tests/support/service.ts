import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, readConfig } from '../../src/config.ts';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { keepEvents } from '../../src/platform/kept-events.ts';
import { openService, type Service } from '../../src/service.ts';
import { type Api, createApi } from './api.ts';
import { createTestClock } from './clock.ts';
import { openTestDatabase } from './database/database.ts';
import { claimTestPorts } from './network/test-ports.ts';

/** Longer than any test, so that nothing hides a lost notification. */
const FEED_RECHECK_MS = 3_600_000;

/** A whole service with its own database, data directory, port and clock. */
export interface TestService extends AsyncDisposable {
  service: Service;
  config: Config;
  /** The address of its database. */
  database_address: DatabaseAddress;
  api: Api;
  administrator_token: string;
  clock: ReturnType<typeof createTestClock>;
  /** All events that it logged. */
  events: ServiceEvent[];
}

/** Reads the configuration of a test's service. Settings have their names in the environment. */
export function readTestConfig(settings: Record<string, string>): Config {
  return readConfig({
    MUSTER_DEMO: 'off',
    // The same kinds of builds on every machine.
    MUSTER_CONTAINERS: 'off',
    // Several at a time share a server with 100 connections.
    MUSTER_DATABASE_POOL: '4',
    // Only the tests of domains prove them.
    MUSTER_DOMAINS_ALLOW: '*',
    // All tests come from one address.
    MUSTER_LIMITS_SCALE: '1000000',
    ...settings,
  });
}

/** Opens a test's service as `muster serve` does. */
export async function openServiceOfTest(
  config: Config,
  { clock, events, database_address }: Pick<TestService, 'clock' | 'events' | 'database_address'>,
): Promise<Service> {
  return await openService(config, {
    clock,
    events: keepEvents({ emit: (event) => void events.push(event) }),
    database_address,
    feed_recheck_ms: FEED_RECHECK_MS,
  });
}

/**
 * Opens a service. Settings have their names in the environment. `database_of`: another service, whose database and clock
 * it shares like a second machine; close this one before that one.
 */
export async function openTestService(
  settings: Record<string, string> = {},
  { database_of }: { database_of?: Pick<TestService, 'database_address' | 'clock'> } = {},
): Promise<TestService> {
  await using opened = new AsyncDisposableStack();
  const database_address = database_of?.database_address ?? opened.use(await openTestDatabase()).address;
  const data_directory = await makeDataDirectory();
  opened.defer(() => rm(data_directory, { recursive: true, force: true }));
  const ports = opened.use(await claimTestPorts());
  const config = readTestConfig({ MUSTER_DATA: data_directory, ...ports.settings, ...settings });
  const clock = database_of?.clock ?? createTestClock();
  const events: ServiceEvent[] = [];
  const service = await openServiceOfTest(config, { clock, events, database_address });
  opened.defer(async () => {
    // On a busy machine, the servers may need longer. If they never end, the test fails, and the service is closed all the same.
    const stopping = service.stopServers().catch(() => service.stopServers());
    await stopping.finally(() => service[Symbol.asyncDispose]());
  });
  const everything = opened.move();
  return {
    service,
    config,
    database_address,
    api: createApi(config.public_url),
    administrator_token: service.bootstrap_result.administrator_token,
    clock,
    events,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** A new directory that other users can enter, as PostgreSQL and game servers must. */
export async function makeDataDirectory(parent = tmpdir()): Promise<string> {
  const directory = await mkdtemp(join(parent, 'muster-data-'));
  await chmod(directory, 0o711);
  return directory;
}
