import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { assignServer, insertServer } from '../../../../src/features/servers/store.ts';
import type { ServerRow } from '../../../../src/features/servers/tables.ts';
import { systemClock } from '../../../../src/platform/clock.ts';
import { type Database, openDatabase } from '../../../../src/platform/database/database.ts';
import { loadKey } from '../../../../src/platform/tokens/keys.ts';
import { makeGame, type TestGame, uploadScript } from '../../../support/game.ts';
import { findFreePort } from '../../../support/network/test-ports.ts';
import { waitingServer } from '../../../support/runtimes/waiting-server.ts';
import { makeDataDirectory, openTestService, type TestService } from '../../../support/service.ts';

const REGISTRY = 'registry.test';

/** Writes a kubeconfig of a cluster that does not answer. */
async function writeKubeconfig(): Promise<string> {
  const file = join(await makeDataDirectory(), 'kubeconfig');
  const config = {
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', namespace: 'games' } }],
    clusters: [{ name: 'one', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'me', user: { token: 'a token' } }],
  };
  await Bun.write(file, JSON.stringify(config));
  return file;
}

describe('kubernetes: a service whose cluster does not answer', () => {
  const opened = new AsyncDisposableStack();
  const port = findFreePort();
  let muster: TestService;
  let database: Database;
  let game: TestGame;
  let build_id: string;
  beforeAll(async () => {
    muster = opened.use(
      await openTestService({
        MUSTER_HOST: '0.0.0.0',
        MUSTER_KUBERNETES: await writeKubeconfig(),
        MUSTER_KUBERNETES_IMAGE: 'muster:1',
        MUSTER_KUBERNETES_HOST: '127.0.0.1',
        MUSTER_KUBERNETES_PORT: String(port),
        MUSTER_KUBERNETES_REGISTRY: REGISTRY,
      }),
    );
    database = opened.use(openDatabase(muster.database_address, 1));
    game = await makeGame(muster.api, muster.administrator_token);
    build_id = await uploadScript(muster.api, game, 'a script');
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  /** Asks for the build of a server as its pod does. */
  async function askForBuild(changes: Partial<ServerRow>) {
    const row = { ...waitingServer({ ...game, build_id, datacenter_id: crypto.randomUUID() }), ...changes };
    await database.transact(async (tx) => {
      await insertServer(tx, row);
      await assignServer(tx, row.server_id, { node_id: crypto.randomUUID(), ports: {} });
    });
    const { k: key = '' } = await loadKey(database.queries, systemClock, 'pods');
    const token = createHmac('sha256', key).update(row.server_id).digest('base64url');
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`http://127.0.0.1:${port}/pods/${row.server_id}/build`, { headers });
    return [answer.status, await answer.text()];
  }

  test('gives a build to the pod of a server that starts, and not once the server has started or ended', async () => {
    expect(await askForBuild({})).toEqual([200, expect.stringContaining('a script')]);
    const refused = [503, 'this server does not start\n'];
    expect(await askForBuild({ started_at: new Date() })).toEqual(refused);
    expect(await askForBuild({ ended_at: new Date() })).toEqual(refused);
  });

  test('reports the requests of nodes for images without their tokens, and how many builds are being read', async () => {
    const token = 'f'.repeat(64);
    const path = `/v2/${build_id}/${token}/manifests/sha256:${'0'.repeat(64)}`;
    const answer = await fetch(new URL(path, muster.config.local_url), { headers: { host: REGISTRY } });
    expect(answer.status).toBe(404);
    const served = muster.events.filter((one) => one.event === 'request_served' && one.route.startsWith('/v2'));
    expect(served).toMatchObject([{ method: 'GET', route: '/v2/manifests', status: 404 }]);
    expect(JSON.stringify(served)).not.toContain(token);
    const { limits } = await muster.api.ok('GET', '/cloud/service', { token: muster.administrator_token });
    expect(limits).toContainEqual({ name: 'build_reads', used: 0, max: 256 });
  });
});
