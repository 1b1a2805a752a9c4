import { CONTAINERS, type PodManifest } from './pod-manifest.ts';

/**
 * Returns the GameServer by which Agones makes a pod. Agones opens the ports, adds a container of its own, and takes the name
 * of the GameServer for the pod.
 */
export function makeGameServer({ metadata, spec }: PodManifest) {
  const { name, labels, annotations, finalizers } = metadata;
  // Agones gives its own container an account of the cluster, and hides it from the server's.
  const { automountServiceAccountToken: _, containers, ...rest } = spec;
  const ports = containers.flatMap((container) => container.ports);
  return {
    apiVersion: 'agones.dev/v1',
    kind: 'GameServer',
    metadata: { name, labels },
    spec: {
      container: CONTAINERS.server,
      // The server does not report its health to Agones: the first process of the pod reports to Muster.
      health: { disabled: true },
      ports: ports.map((port, index) => ({ name: `port-${index}`, portPolicy: 'Static', ...port })),
      template: {
        metadata: { labels, annotations, finalizers },
        spec: { ...rest, containers: containers.map(({ ports: _ports, ...container }) => container) },
      },
    },
  };
}
