import { expect, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeGameServer } from '../../../../src/features/servers/runtimes/kubernetes/agones-manifest.ts';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { makePod, type PodManifest } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import type { StartOrder } from '../../../../src/features/servers/runtimes/runtime.ts';
import { makeDataDirectory } from '../../../support/service.ts';

const MIB = 1_024 ** 2;
const BLOCK = 4_096;

/** Returns a pod of the given facts. */
function podOf({ disk_max, build_bytes = 0, ports = {} }: PodFacts): PodManifest {
  return makePod(
    {
      order: {
        server_id: crypto.randomUUID(),
        build_id: crypto.randomUUID(),
        arguments: [],
        environment: {},
        ports,
        build: {
          game_id: crypto.randomUUID(),
          kind: 'archive',
          sha256: undefined,
          directory: '/build',
          command: ['run'],
        },
        resources: { cpu: 100, memory: 64 },
      },
      files: { kind: 'fetched', order: { url: 'http://muster', token: '', sha256: '' }, bytes: build_bytes },
      server: {
        url: 'ws://muster',
        token: '',
        kind: 'archive',
        command: [],
        directory: '/build',
        environment: {},
        memory: 64,
      },
    },
    { machine_id: crypto.randomUUID(), own_image: 'muster:1', disk_max },
  );
}

interface PodFacts {
  disk_max?: { bytes: number; files: number };
  build_bytes?: number;
  ports?: StartOrder['ports'];
}

test('kubernetes: a pod may have its build and its unread output on the disk beside what its server may have', () => {
  const limit = 100 * MIB + 300 * MIB + 1_024 * MIB;
  const limitOf = (facts: PodFacts) => podOf(facts).spec.containers[0]?.resources.limits;
  const disk_max = { bytes: 100 * MIB, files: 1_000 };
  expect(limitOf({ disk_max, build_bytes: 300 * MIB })).toMatchObject({ 'ephemeral-storage': String(limit) });
  expect(limitOf({ build_bytes: 300 * MIB })).not.toHaveProperty('ephemeral-storage');
});

test('kubernetes: the size of a build is what its files take in blocks of the disk, and folders', async () => {
  const directory = await makeDataDirectory();
  await mkdir(join(directory, 'maps'));
  await Bun.write(join(directory, 'run.sh'), 'exit 0');
  await Bun.write(join(directory, 'maps/large'), 'x'.repeat(3 * BLOCK + 1));
  await Bun.write(join(directory, 'maps/empty'), '');
  const { bytes } = await createPackedBuilds().facts({ directory, game_id: 'one' });
  expect(bytes).toBe((1 + 4 + 2) * BLOCK);
});

test('kubernetes: a GameServer has the pod, without its ports, which Agones opens, and without its refusal of an account, which a container of Agones needs', () => {
  const game = { protocol: 'udp', routing: 'host', internal_port: 26_001, public_port: 26_001 } as const;
  const chat = { protocol: 'http', routing: 'host', internal_port: 26_002, public_port: 26_002 } as const;
  const pod = podOf({ ports: { game, chat } });
  const { metadata, spec } = makeGameServer(pod);
  expect(metadata).toEqual({ name: pod.metadata.name, labels: pod.metadata.labels });
  expect(spec).toMatchObject({ container: 'server', health: { disabled: true } });
  expect(spec.ports).toEqual([
    { name: 'port-0', portPolicy: 'Static', protocol: 'UDP', containerPort: 26_001, hostPort: 26_001 },
    { name: 'port-1', portPolicy: 'Static', protocol: 'TCP', containerPort: 26_002, hostPort: 26_002 },
  ]);
  const { labels, annotations, finalizers } = pod.metadata;
  expect(spec.template.metadata).toEqual({ labels, annotations, finalizers });
  const { automountServiceAccountToken, containers, ...rest } = pod.spec;
  expect(automountServiceAccountToken).toBe(false);
  const without_ports = containers.map(({ ports: _, ...container }) => container);
  expect<object>(spec.template.spec).toEqual({ ...rest, containers: without_ports });
});
