import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import {
  createPlacement,
  type PlacementDependencies,
  type PlacementMachine,
} from '../../../src/features/servers/placement/placement.ts';
import type { PlacedServer } from '../../../src/features/servers/tables.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import type { SharedService } from '../suite.ts';
import { LONE_MACHINE } from './lone-machine.ts';

interface PlacingOptions {
  /** By default a datacenter without servers. */
  datacenter_id?: string;
  is_unpacked?: boolean;
  machine?: Partial<PlacementMachine>;
  /** What it knows of the other machines; by default that there are none. */
  machines?: Partial<PlacementDependencies['machines']>;
  logs?: PlacementDependencies['logs'];
}

/** Creates a machine that only places waiting servers, in the database of a service. */
export function createPlacingMachine(
  { database, clock, config }: Pick<SharedService, 'database' | 'clock' | 'config'>,
  { datacenter_id = crypto.randomUUID(), is_unpacked = true, machine = {}, machines = {}, logs }: PlacingOptions,
) {
  const node_id = crypto.randomUUID();
  const again_in: number[] = [];
  const events: ServiceEvent[] = [];
  const placement = createPlacement(
    {
      database,
      clock,
      events: { emit: (event) => void events.push(event) },
      logs: logs ?? createLogs({ database, clock }),
      runtime: {},
      developerGroupsOf: async () => new Map(),
      machines: { ...LONE_MACHINE, ...machines },
      builds: { isUnpacked: async () => is_unpacked },
      machine: {
        node_id,
        datacenter_id,
        api_url: 'http://127.0.0.1',
        server_ports: config.servers.server_ports,
        servers_max: 10,
        servers_per_group_max: 10,
        resources_max: undefined,
        relayed: new Set<never>(),
        ...machine,
      },
    },
    (ms) => again_in.push(ms),
  );
  return {
    node_id,
    events,
    /** After which times it requested another round. */
    again_in,
    take: (running: PlacedServer[] = []): Promise<number> => placement.takeWaiting(running),
  };
}
