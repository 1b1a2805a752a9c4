import type { ServerRow } from '../../../src/features/servers/tables.ts';

type ServerIds = Pick<ServerRow, 'game_id' | 'namespace_id' | 'build_id' | 'datacenter_id'>;

/** Returns the row of a new server that waits for a machine. */
export function waitingServer({ game_id, namespace_id, build_id, datacenter_id }: ServerIds): ServerRow {
  return {
    server_id: crypto.randomUUID(),
    game_id,
    namespace_id,
    build_id,
    datacenter_id,
    node_id: null,
    tags: {},
    arguments: [],
    environment: {},
    service_environment: {},
    token_caller: null,
    network_mode: 'bridge',
    ports: {},
    cpu: 100,
    memory: 64,
    kill_timeout_ms: 30_000,
    created_at: new Date(),
    wait_reason: null,
    identity: null,
    started_at: null,
    destroyed_at: null,
    kill_at: null,
    ended_at: null,
    exit_code: null,
    exit_signal: null,
    failure: null,
    has_lost_machine: false,
    restarts_max: null,
    chain_id: null,
    restart_of: null,
    restarted_as: null,
    restart_count: 0,
    start_after: null,
  };
}
