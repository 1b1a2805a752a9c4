import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { UNKNOWN_CLUSTER } from '../../../../src/features/machines/tables.ts';
import { nameOf } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { type Database, openDatabase } from '../../../../src/platform/database/database.ts';
import { makeGame, uploadScript } from '../../../support/game.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN } from '../../../support/gateway.ts';
import { readEnd, readHolder } from '../../../support/kubernetes/cluster-rows.ts';
import { openPodApi, type PodApi } from '../../../support/kubernetes/kubernetes-api.ts';
import { machineIdOf } from '../../../support/machines/machines.ts';
import { findFreePort } from '../../../support/network/test-ports.ts';
import { openRestartableService, type RestartableService } from '../../../support/restart.ts';
import { serversOf } from '../../../support/servers.ts';
import { openTestService, type TestService } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

const TEST_TIMEOUT_MS = 300_000;
/** After as many failures, another loop would pause for 12.8 s. */
const FAILURES = 6;
const AGAIN_AFTER_MS = 5_000;
const HOUR_MS = String(3_600_000);
const RUNNING = {
  phase: 'Running',
  hostIP: '127.0.0.1',
  containerStatuses: [{ name: 'server', state: { running: {} } }],
};
const ENDED = {
  phase: 'Failed',
  hostIP: '127.0.0.1',
  containerStatuses: [{ name: 'server', state: { terminated: { exitCode: 7 } } }],
};

describe('kubernetes: a Muster', () => {
  let stack = new AsyncDisposableStack();
  let api: PodApi;
  beforeEach(async () => {
    api = stack.use(await openPodApi());
  });
  afterEach(async () => {
    await stack.disposeAsync();
    stack = new AsyncDisposableStack();
  }, TEST_TIMEOUT_MS);

  const settings = (more: Record<string, string> = {}) => ({
    MUSTER_HOST: '0.0.0.0',
    MUSTER_KUBERNETES: api.kubeconfig,
    MUSTER_KUBERNETES_IMAGE: 'muster:test',
    MUSTER_KUBERNETES_HOST: '127.0.0.1',
    MUSTER_KUBERNETES_PORT: String(findFreePort()),
    MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN,
    ...more,
  });

  /** Creates a server with a port behind the gateway, which no program has yet. */
  async function createServer(muster: TestService | RestartableService) {
    const game = await makeGame(muster.api, muster.administrator_token);
    const servers = serversOf(muster, game);
    const build = await uploadScript(muster.api, game, '');
    const ports = { web: { protocol: 'http', routing: { game_guard: {} } } };
    const body = await servers.bodyOf(build, { network: { ports } });
    const server_id: string = (await servers.create(body)).body.server.id;
    return { server_id, started: () => servers.waitForStart(server_id) };
  }

  const openDatabaseOf = ({ database_address }: TestService | RestartableService) =>
    stack.use(openDatabase(database_address, 1));

  test(
    'that may not read its namespace says so, and takes the cluster once it may',
    async () => {
      api.namespaces = 'refused';
      const muster = stack.use(await openTestService(settings()));
      const database = openDatabaseOf(muster);
      const readWarnings = async () => (await muster.api.ok('GET', '/health/ready')).warnings ?? [];
      const hasWarning = async () => (await readWarnings()).some(({ code }: { code: string }) => code === 'LOOP_FAILS');
      await waitFor(hasWarning, 'the warning');
      const reported = muster.events.filter(({ event }) => event === 'cluster_unavailable');
      expect(reported).toHaveLength(1);
      // It tries again often, because starts wait for it and there may be no other Muster.
      const readPause = async () => {
        const { loops } = await muster.api.ok('GET', '/cloud/service', { token: muster.administrator_token });
        const { failures, next_step_ts, last_failure } = loops.find(({ name }: { name: string }) => name === 'cluster');
        if (failures <= FAILURES || next_step_ts === undefined) return undefined;
        return { pause_ms: Date.parse(next_step_ts) - Date.parse(last_failure.at_ts) };
      };
      const { pause_ms } = await waitFor(readPause, 'the pause after more failures');
      expect(pause_ms).toBeLessThan(2 * AGAIN_AFTER_MS);
      api.namespaces = 'answered';
      await waitFor(() => readHolder(database), 'it to hold the cluster');
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'that stops hands the pods on to another one, although a start is under way that takes long',
    async () => {
      const long_lease = settings({ MUSTER_MACHINE_LOST_MS: HOUR_MS });
      const first = stack.use(await openRestartableService(long_lease));
      const database = openDatabaseOf(first);
      await waitFor(() => readHolder(database), 'the first to hold the cluster');
      const second_settings = { ...long_lease, MUSTER_KUBERNETES_PORT: String(findFreePort()) };
      const second = stack.use(await openTestService(second_settings, { database_of: first }));
      const second_id = await machineIdOf(second.config.data_directory);
      await waitFor(() => isUsingCluster(database, second_id), 'the second to know the cluster');
      const creating = api.holdCreation();
      await createServer(first);
      const creation = await creating;
      const closed = first.close();
      await waitFor(async () => (await readHolder(database)) === second_id, 'the second to hold the cluster');
      expect(creation.isGivenUp()).toBe(false);
      creation.answer();
      await closed;
      expect(api.pods.size).toBe(1);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'that stops keeps the pods while its players leave, if there is no other one',
    async () => {
      const patient = { MUSTER_GATEWAY_DRAIN_MS: HOUR_MS, MUSTER_MACHINE_REST_MS: '1000' };
      const muster = stack.use(await openRestartableService(settings(patient)));
      const database = openDatabaseOf(muster);
      const { server_id, started } = await createServer(muster);
      const name = nameOf(server_id);
      const pod = await waitFor(() => api.pods.get(name), 'its pod');
      using _ = openProgram(pod.spec.containers.flatMap(({ ports = [] }) => ports)[0]?.hostPort ?? 0);
      api.setStatus(name, RUNNING);
      await started();
      using player = openWebSocketPlayer({ name: `${server_id}-web`, url: muster.config.local_url });
      await player.next(1);
      const closed = muster.close();
      const isDraining = () => muster.events.some(({ event }) => event === 'gateway_draining');
      await waitFor(isDraining, 'the stop to wait for players');
      api.setStatus(name, ENDED);
      const end = await waitFor(() => readEnd(database, server_id), 'its end');
      expect(end).toEqual({ exit_code: 7, exit_signal: null, failure: null, has_lost_machine: false });
      expect(muster.events.map(({ event }) => event)).not.toContain('machine_lost');
      player.socket.close();
      await closed;
    },
    TEST_TIMEOUT_MS,
  );
});

/** Opens a program that greets each WebSocket. */
function openProgram(port: number): Disposable {
  const program = Bun.serve({
    port,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('', { status: 400 })),
    websocket: { open: (socket) => void socket.send('hello'), message() {} },
  });
  return { [Symbol.dispose]: () => void program.stop(true) };
}

async function isUsingCluster({ queries }: Database, machine_id: string): Promise<boolean> {
  const rows = await queries.execute(sql`
    select from machines where node_id = ${machine_id}::uuid and cluster_id <> ${UNKNOWN_CLUSTER}::uuid`);
  return rows.length > 0;
}
