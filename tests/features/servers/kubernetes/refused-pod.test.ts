import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { ClusterClient } from '../../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { openKubernetesRuntime } from '../../../../src/features/servers/runtimes/kubernetes/kubernetes-runtime.ts';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { openPodPort } from '../../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import { ServiceError } from '../../../../src/platform/errors.ts';
import { rejectionOf } from '../../../support/refusal.ts';
import { makeDataDirectory } from '../../../support/service.ts';

/** Serves a cluster without pods, which refuses to create one. */
function serveRefusal(message: string) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      if (request.method === 'POST') return Response.json({ message }, { status: 422 });
      const is_watch = new URL(request.url).searchParams.has('watch');
      // The watch stays open.
      return is_watch
        ? new Response(new ReadableStream())
        : Response.json({ metadata: { resourceVersion: '1' }, items: [] });
    },
  });
}

test('kubernetes: a refused pod says why, and not the name of its image, which has a token', async () => {
  const image = `play.example.com/${crypto.randomUUID()}/${'b'.repeat(64)}@sha256:${'c'.repeat(64)}`;
  await using opened = new AsyncDisposableStack();
  const api = serveRefusal(`Pod is invalid: spec.containers[0].image: Invalid value: "${image}": not allowed`);
  opened.defer(() => api.stop(true));
  const access = () => ({ url: api.url.origin, token: undefined, tls: {} });
  const openBuild = async () => undefined;
  const runtime = opened.use(
    await openKubernetesRuntime({
      client: new ClusterClient({ namespace: 'games', access }),
      namespace: 'games',
      machine_id: crypto.randomUUID(),
      own_image: 'muster:1',
      pod_port: opened.use(openPodPort({ pods_host: '127.0.0.1', port: 0, key: 'a key', openBuild })),
      images: undefined,
      builds: createPackedBuilds(),
      has_agones: false,
      api_url: 'http://127.0.0.1:8080',
      api_url_for_pods: 'http://127.0.0.1:8080',
      disk_max: undefined,
      onLost() {},
    }),
  );
  const directory = await makeDataDirectory();
  await Bun.write(join(directory, 'run.sh'), 'exit 0');
  const starting = runtime.start({
    server_id: crypto.randomUUID(),
    build_id: crypto.randomUUID(),
    build: { game_id: crypto.randomUUID(), kind: 'archive', sha256: undefined, directory, command: ['./run.sh'] },
    resources: { cpu: 100, memory: 64 },
    ports: {},
    arguments: [],
    environment: {},
  });
  const { message } = await rejectionOf(ServiceError, starting);
  expect(message).toContain('the cluster refused its pod: Pod is invalid');
  expect(message).toContain('Invalid value: "its image": not allowed');
});
