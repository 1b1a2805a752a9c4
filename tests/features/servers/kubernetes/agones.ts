import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { ClusterClient } from '../../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { openCredentials } from '../../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import { nameOf } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { inspectPod, kubernetesRuntime } from '../../../support/kubernetes/kubernetes.ts';
import { type Lab, NAMESPACE } from '../../../support/kubernetes/kubernetes-lab.ts';
import { openTestRuntime, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

const GROUP = 'agones.dev';
const GAME_SERVERS = `/apis/${GROUP}/v1/namespaces/${NAMESPACE}/gameservers`;

/** GameServers as Agones declares them, without the shape of their parts. */
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gameservers.${GROUP}` },
  spec: {
    group: GROUP,
    names: { kind: 'GameServer', plural: 'gameservers', singular: 'gameserver' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};
const ROLE = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'agones', namespace: NAMESPACE },
  rules: [{ apiGroups: [GROUP], resources: ['gameservers'], verbs: ['get', 'list', 'create', 'delete'] }],
};
const BINDING = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'agones', namespace: NAMESPACE },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'agones' },
  subjects: [{ kind: 'ServiceAccount', name: 'muster', namespace: NAMESPACE }],
};

/**
 * Describes what Muster does with the GameServers of Agones. There is no Agones in the cluster: it only stores them, and the
 * test makes the pods, as the published source of Agones does.
 */
export function describeAgones(lab: () => Lab): void {
  describe('with Agones, a server', () => {
    const kind = kubernetesRuntime(lab, { has_agones: true });
    let opened: TestRuntime;
    let operator: ClusterClient;
    beforeAll(async () => {
      operator = new ClusterClient(openCredentials(lab().operator_kubeconfig));
      opened = await openTestRuntime(kind);
    });
    afterAll(async () => {
      await opened[Symbol.asyncDispose]();
      await kind[Symbol.asyncDispose]();
    });

    const pathOf = (server_id: string) => `${GAME_SERVERS}/${nameOf(server_id)}`;
    const inspect = async (server_id: string) => {
      const { status, text } = await operator.call({ method: 'GET', path: pathOf(server_id), expected: [404] });
      return status === 404 ? undefined : JSON.parse(text);
    };
    const handleOf = (server_id: string) => ({ server_id, identity: undefined });

    /** Makes the pod of a GameServer, as Agones does. */
    async function makePod(server_id: string): Promise<void> {
      const { metadata, spec } = await inspect(server_id);
      const { uid, name } = metadata;
      const { template, ports } = spec;
      const owner = { apiVersion: 'agones.dev/v1', kind: 'GameServer', controller: true, name, uid };
      const body = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...template.metadata, name, ownerReferences: [owner] },
        spec: { ...template.spec, containers: template.spec.containers.map((one: object) => ({ ...one, ports })) },
      };
      await operator.call({ method: 'POST', path: `/api/v1/namespaces/${NAMESPACE}/pods`, body });
    }

    async function setState(server_id: string, state: string): Promise<void> {
      const patch = ['patch', 'gameserver', nameOf(server_id), '--type=merge', '-p'];
      await lab().run('kubectl', '-n', NAMESPACE, ...patch, JSON.stringify({ status: { state } }));
    }

    test('is refused by a cluster without Agones', async () => {
      await using lone_kind = kubernetesRuntime(lab, { has_agones: true, client: operator });
      await using lone = await openTestRuntime(lone_kind);
      const order = await lone.orderOf('');
      await expect(lone.runtime.start(order)).rejects.toThrow('Agones is not installed in the cluster');
    });

    test('that Muster has no right to create is refused, and delays no other server', async () => {
      const order = await opened.orderOf('');
      await expect(opened.runtime.start(order)).rejects.toThrow('cannot create resource');
      expect(await opened.observe(handleOf(order.server_id))).toMatchObject({ is: 'ended' });
      // About a server without a refused start, Muster asks the cluster, which refuses that too.
      const other = handleOf(crypto.randomUUID());
      expect(await opened.observe(other)).toEqual({ is: 'absent' });
      await opened.kill(other);
    });

    describe('in a cluster with Agones,', () => {
      beforeAll(async () => {
        const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
        const of_namespace = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
        await operator.call({ method: 'POST', path: definitions, body: DEFINITION });
        await operator.call({ method: 'POST', path: `${of_namespace}/roles`, body: ROLE });
        await operator.call({ method: 'POST', path: `${of_namespace}/rolebindings`, body: BINDING });
        const isServed = () => operator.call({ method: 'GET', path: GAME_SERVERS, expected: [404] });
        await waitFor(async () => (await isServed()).status === 200, 'GameServers to be served');
      });

      test('runs as the pod that Agones makes, and leaves neither the pod nor its GameServer', async () => {
        const order = await opened.orderOf('echo once; exec sleep 600');
        const { server_id } = order;
        const { identity } = await opened.runtime.start(order);
        const server = { server_id, identity };
        expect(await opened.runtime.start(order)).toMatchObject({ is: 'pending', reason: 'Agones makes its pod' });
        expect(await opened.observe(server)).toMatchObject({ is: 'pending', identity });
        expect((await opened.runtime.list()).map((one) => one.server_id)).toEqual([server_id]);
        await makePod(server_id);
        await waitFor(async () => (await opened.output(server)) === 'once\n', 'its output');
        await waitFor(async () => (await opened.observe(server)).is === 'running', 'it to run');
        await opened.remove(server);
        expect(await inspect(server_id)).toBeUndefined();
        await waitFor(async () => (await inspectPod(lab(), server_id)) === undefined, 'its pod to be removed');
        expect(await opened.observe(server)).toEqual({ is: 'absent' });
      });

      test('whose GameServer fails has ended, and says which one the operator should look at', async () => {
        const order = await opened.orderOf('');
        const { server_id } = order;
        await opened.runtime.start(order);
        await setState(server_id, 'Error');
        const end = await opened.observe(handleOf(server_id));
        expect(end).toMatchObject({
          is: 'ended',
          reason: expect.stringContaining(`the events of ${nameOf(server_id)}`),
        });
        // The kill removes the GameServer, which had the reason.
        await opened.kill(handleOf(server_id));
        expect(await inspect(server_id)).toBeUndefined();
        expect(await opened.observe(handleOf(server_id))).toEqual(end);
        await opened.remove(handleOf(server_id));
        expect(await opened.observe(handleOf(server_id))).toEqual({ is: 'absent' });
      });

      test('that is ended before it has a pod leaves no GameServer', async () => {
        const order = await opened.orderOf('');
        await opened.runtime.start(order);
        await opened.kill(handleOf(order.server_id));
        expect(await inspect(order.server_id)).toBeUndefined();
      });

      test('of a lost machine is found and removed by another', async () => {
        await using lost_kind = kubernetesRuntime(lab, { has_agones: true });
        await using lost = await openTestRuntime(lost_kind);
        const order = await lost.orderOf('');
        await lost.runtime.start(order);
        const { other_machines } = opened.runtime;
        expect(await other_machines?.list([lost_kind.machine_id])).toEqual([order.server_id]);
        await other_machines?.remove(order.server_id);
        expect(await inspect(order.server_id)).toBeUndefined();
      });
    });
  });
}
