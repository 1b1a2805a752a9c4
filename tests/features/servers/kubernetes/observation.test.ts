import { describe, expect, test } from 'bun:test';
import { observePod } from '../../../../src/features/servers/runtimes/kubernetes/pod-observation.ts';
import type { Pod } from '../../../../src/features/servers/runtimes/kubernetes/pod-shapes.ts';

type Status = NonNullable<Pod['status']>;
type State = NonNullable<NonNullable<Status['containerStatuses']>[number]['state']>;

const SINCE = '2026-01-02T03:04:05Z';

function podWith(status: Status, { node = 'node1', is_deleted = false } = {}): Pod {
  const deleted = is_deleted ? { deletionTimestamp: SINCE } : {};
  return {
    metadata: { name: 'muster-1', uid: '1', resourceVersion: '1', ...deleted },
    spec: node === '' ? {} : { nodeName: node },
    status,
  };
}

const server = (state: State): Status => ({ containerStatuses: [{ name: 'server', state }] });
const fetching = (state: State): Status => ({ initContainerStatuses: [{ name: 'build', state }] });
const unplaced = (message: string): Status => ({
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
});
const ready = (status: string, reason?: string) => [
  { type: 'Ready', status, lastTransitionTime: SINCE, ...(reason !== undefined && { reason }) },
];

describe('kubernetes: a pod as its developer reads it', () => {
  const PENDING: [string, Pod, string, boolean][] = [
    ['without a node', podWith({ phase: 'Pending' }, { node: '' }), 'it waits for a node', false],
    ['whose build comes', podWith(fetching({ running: {} })), 'its pod is being set up', false],
    ['that is set up', podWith(server({ waiting: { reason: 'ContainerCreating' } })), 'its pod is being set up', false],
    [
      'without room',
      podWith(unplaced('0/2 nodes are available: 2 Insufficient memory.'), { node: '' }),
      'no node has room for it (0/2 nodes are available: 2 Insufficient memory.)',
      false,
    ],
    [
      'without its port',
      podWith(unplaced("0/2 nodes are available: 2 node(s) didn't have free ports"), { node: '' }),
      "no node has its port free (0/2 nodes are available: 2 node(s) didn't have free ports)",
      false,
    ],
    [
      'without an image',
      podWith(fetching({ waiting: { reason: 'ImagePullBackOff', message: 'no such image' } })),
      'the image of Muster cannot be pulled to its node: tell the operator to check MUSTER_KUBERNETES_IMAGE (no such image)',
      true,
    ],
    [
      'with a state of a later release',
      podWith(server({ waiting: { reason: 'Pondering' } })),
      'its node says Pondering',
      false,
    ],
  ];
  test.each(PENDING)('%s is pending, and says why', (_, pod, reason, needs_operator) => {
    expect(observePod(pod)).toEqual({ is: 'pending', reason, needs_operator });
  });

  const code = (exit_code: number, reason?: string) => ({
    is: 'ended',
    exit_code,
    exit_signal: null,
    ...(reason !== undefined && { reason }),
  });
  const unknown = (reason?: string) => ({
    is: 'ended',
    exit_code: null,
    exit_signal: null,
    ...(reason !== undefined && { reason }),
  });
  const disrupted = (end: object) => ({ ...end, is_disruption: true });
  const ENDED: [string, Pod, object][] = [
    ['by itself', podWith({ phase: 'Failed', ...server({ terminated: { exitCode: 3 } }) }), code(3)],
    [
      'by a signal',
      podWith({ phase: 'Failed', ...server({ terminated: { exitCode: 139 } }) }),
      { is: 'ended', exit_code: null, exit_signal: 'SIGSEGV' },
    ],
    [
      'out of memory',
      podWith({ phase: 'Failed', ...server({ terminated: { exitCode: 137, reason: 'OOMKilled' } }) }),
      { is: 'ended', exit_code: null, exit_signal: 'SIGKILL', reason: 'it exceeded its memory' },
    ],
    [
      'without a known end',
      podWith({ phase: 'Failed', ...server({ terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } }) }),
      unknown(),
    ],
    [
      'by an eviction',
      podWith({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }),
      disrupted(unknown('its node ran short of resources and evicted it (The node was low on resource: memory.)')),
    ],
    [
      'over its limit of the disk',
      podWith({
        phase: 'Failed',
        reason: 'Evicted',
        message: 'Pod ephemeral local storage usage exceeds the total limit of containers 4G. ',
      }),
      unknown(
        'it exceeded its disk limit (Pod ephemeral local storage usage exceeds the total limit of containers 4G.)',
      ),
    ],
    [
      'over the limit of its folder',
      podWith({
        phase: 'Failed',
        reason: 'Evicted',
        message: 'Usage of EmptyDir volume "work" exceeds the limit "4G". ',
      }),
      unknown('it exceeded its disk limit (Usage of EmptyDir volume "work" exceeds the limit "4G".)'),
    ],
    [
      'over the limit of its container',
      podWith({
        phase: 'Failed',
        reason: 'Evicted',
        message: 'Container server exceeded its local ephemeral storage limit "4G". ',
      }),
      unknown('it exceeded its disk limit (Container server exceeded its local ephemeral storage limit "4G".)'),
    ],
    [
      'on a full node',
      podWith({ phase: 'Failed', reason: 'OutOfmemory' }),
      disrupted(unknown('its node has too little memory left')),
    ],
    [
      'by a delete',
      podWith(server({ terminated: { exitCode: 0 } }), { is_deleted: true }),
      disrupted(code(0, 'its pod was deleted from the cluster')),
    ],
    [
      'without its build',
      podWith({ phase: 'Failed', ...fetching({ terminated: { exitCode: 1, message: 'no route' } }) }),
      unknown('its build could not be fetched (no route)'),
    ],
  ];
  test.each(ENDED)('that ended %s says how', (_, pod, end) => {
    expect(observePod(pod)).toEqual(end as never);
  });

  test('that waits for the image of its build names the setting of the registry, and not the image', () => {
    const image = `10.0.0.7:8090/${crypto.randomUUID()}/${'b'.repeat(64)}@sha256:${'c'.repeat(64)}`;
    const message = `rpc error: failed to pull and unpack image "${image}": failed to resolve reference "${image}": ${image}: not found`;
    const { metadata, ...pod } = podWith(server({ waiting: { reason: 'ErrImagePull', message } }));
    const annotations = { 'muster.internal/image': 'docker_image' };
    const { reason, ...seen } = observePod({ ...pod, metadata: { ...metadata, annotations } }) as { reason: string };
    expect<object>(seen).toEqual({ is: 'pending', needs_operator: true, is_pull: true });
    expect(reason).toBe(
      'its image cannot be pulled to its node: tell the operator to check MUSTER_KUBERNETES_REGISTRY (rpc error: failed to pull and unpack image "its image": failed to resolve reference "its image": its image: not found)',
    );
  });

  test('that runs is unreachable only if the cluster lost its node, which gives no reason', () => {
    const running = server({ running: {} });
    expect(observePod(podWith({ ...running, conditions: ready('True') }))).toEqual({ is: 'running' });
    expect(observePod(podWith({ ...running, conditions: ready('False', 'ContainersNotReady') }))).toEqual({
      is: 'running',
    });
    expect(observePod(podWith({ ...running, conditions: ready('False') }, { is_deleted: true }))).toEqual({
      is: 'unreachable',
      lost_at: SINCE,
    });
  });
});
