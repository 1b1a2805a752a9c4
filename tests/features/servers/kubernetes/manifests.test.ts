import { describe, expect, test } from 'bun:test';
import { join, resolve } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../../../src/config.ts';
import { isUsualPort } from '../../../../src/platform/outbound/addresses.ts';

const ROOT = resolve(import.meta.dir, '../../../..');
const FOLDER = join(ROOT, 'deploy/kubernetes');
const read = (...path: string[]) => Bun.file(join(...path)).text();

interface Resource {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: { resources: string[]; verbs: string[] }[];
  subjects?: { name: string; namespace: string }[];
  spec?: {
    template: { spec: { serviceAccountName: string; containers: Container[] } };
    ports: { port: number; targetPort?: string }[];
    egress?: { to?: object[]; ports?: { port: number; endPort?: number; protocol?: string }[] }[];
  };
}
interface Container {
  env: { name: string; value?: string }[];
  ports: { name: string; containerPort: number }[];
}
interface Kustomization {
  resources: string[];
  images: { newName: string; newTag: string }[];
  configMapGenerator: { literals: string[] }[];
}

async function readManifests() {
  const kustomization: Kustomization = parse(await read(FOLDER, 'kustomization.yaml'));
  const texts = await Promise.all(kustomization.resources.map((file) => read(FOLDER, file)));
  const resources: Resource[] = texts.flatMap((text) => parseAllDocuments(text).map((one) => one.toJS()));
  const find = (kind: string, name: string) => {
    const found = resources.find((one) => one.kind === kind && one.metadata.name === name);
    if (!found) throw new Error(`there is no ${kind} ${name}`);
    return found;
  };
  return { kustomization, find };
}

/** Returns the lines NAME=VALUE as an object. */
const pairsOf = (lines: string[]): Record<string, string> =>
  Object.fromEntries(lines.map((line) => /^([A-Z0-9_]+)=(.*)$/.exec(line)?.slice(1) ?? []));

const isOfInternet = (to: object[] = []) => to.some((one) => JSON.stringify(one).includes('"cidr":"0.0.0.0/0"'));

describe('kubernetes: the manifests', () => {
  test('give a Muster settings that it takes, with the image of its release and more ports than servers', async () => {
    const { kustomization, find } = await readManifests();
    const [container] = find('StatefulSet', 'muster').spec?.template.spec.containers ?? [];
    const literals = pairsOf(kustomization.configMapGenerator.flatMap((one) => one.literals));
    const secrets = pairsOf((await read(FOLDER, 'secret.example.env')).trim().split('\n'));
    const own = Object.fromEntries((container?.env ?? []).flatMap(({ name, value }) => (value ? [[name, value]] : [])));
    const image_variables = pairsOf(/^ENV (.*)$/m.exec(await read(ROOT, 'Dockerfile'))?.[1]?.split(' ') ?? []);
    const config = readConfig({ ...image_variables, ...literals, ...secrets, ...own });
    const [image] = kustomization.images;
    expect(config.kubernetes).toMatchObject({
      kubeconfig: 'in-cluster',
      namespace: 'muster-games',
      own_image: `${image?.newName}:${image?.newTag}`,
      pods_host: 'muster-pods.muster.svc',
    });
    const { min, max } = config.servers.server_ports;
    expect(max - min + 1).toBeGreaterThan(config.servers.servers_max);
    const ports = Object.fromEntries((container?.ports ?? []).map(({ name, containerPort }) => [name, containerPort]));
    expect(ports).toEqual({ http: config.port, pods: config.kubernetes?.port ?? 0 });
    // Servers reach all Musters by this name, at both ports, until they meet the one that has them.
    const { spec } = find('Service', 'muster-pods');
    expect(spec?.ports.map(({ port }) => port)).toEqual([config.port, config.kubernetes?.port ?? 0]);
    expect(spec).not.toHaveProperty('sessionAffinity');
  });

  test('let the gateway reach game servers at the ports of any node, also at public addresses', async () => {
    const { kustomization, find } = await readManifests();
    const { MUSTER_SERVER_PORTS } = pairsOf(kustomization.configMapGenerator.flatMap((one) => one.literals));
    const to_all = find('NetworkPolicy', 'muster').spec?.egress?.filter(({ to }) => to === undefined) ?? [];
    const ranges = to_all.flatMap(({ ports = [] }) => ports.map(({ port, endPort = port }) => `${port}-${endPort}`));
    expect(ranges).toContain(MUSTER_SERVER_PORTS ?? '');
  });

  test('let requests to the Internet leave at the ports that addresses of verification servers may have', async () => {
    const { find } = await readManifests();
    const to_internet = find('NetworkPolicy', 'muster').spec?.egress?.filter(({ to }) => isOfInternet(to)) ?? [];
    const ranges = to_internet.flatMap(({ ports = [] }) => ports);
    const ports = [25, 80, 443, 1023, 1024, 8443, 65_535];
    const admitted = ports.filter((one) => ranges.some(({ port, endPort = port }) => port <= one && one <= endPort));
    expect(admitted).toEqual(ports.filter(isUsualPort));
  });

  test('give it the rights that the docs name, and no others', async () => {
    const { find } = await readManifests();
    const [, text = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(await read(ROOT, 'docs/kubernetes.md')) ?? [];
    const [role, nodes]: Resource[] = parseAllDocuments(text).map((one) => one.toJS());
    const inner = find('Role', 'muster');
    expect(inner.rules).toEqual(role?.rules as never);
    expect(inner.metadata.namespace).toBe('muster-games');
    expect(find('ClusterRole', 'muster-nodes').rules).toEqual(nodes?.rules as never);
    const account = find('StatefulSet', 'muster').spec?.template.spec.serviceAccountName;
    for (const kind of ['RoleBinding', 'ClusterRoleBinding']) {
      const { subjects } = find(kind, kind === 'RoleBinding' ? 'muster' : 'muster-nodes');
      expect(subjects).toMatchObject([{ name: account, namespace: 'muster' }]);
    }
  });
});
