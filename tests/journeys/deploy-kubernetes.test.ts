import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { $ } from 'bun';
import { parse, stringify } from 'yaml';
import { nameOf } from '../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { type Api, createApi } from '../support/api.ts';
import { AUTHORITY, CERTIFICATE, CERTIFICATE_KEY } from '../support/certificates.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { listServers, uploadBuild } from '../support/game.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN } from '../support/gateway.ts';
import { readHolder } from '../support/kubernetes/cluster-rows.ts';
import { IMAGE, type Lab, reasonWithoutLab, startLab } from '../support/kubernetes/kubernetes-lab.ts';
import { findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame, type RoomPlayer } from '../support/lobbies/room.ts';
import { type LoadBalancer, openLoadBalancer } from '../support/machines/load-balancer.ts';
import { openTcpProxy } from '../support/network/tcp-proxy.ts';
import { openTestBucket, TEST_S3 } from '../support/objects/s3.ts';
import { findContainerProcess } from '../support/processes.ts';
import { packImage } from '../support/runtimes/containers.ts';
import { serversOf } from '../support/servers.ts';
import { waitFor } from '../support/wait.ts';

const ROOT = resolve(import.meta.dir, '../..');
const FOLDER = 'deploy/kubernetes';
/** The public name of the Musters, from which nodes pull images of games. */
const REGISTRY = 'verify.example';
const MUSTERS = ['muster-0', 'muster-1', 'muster-2'] as const;
/** Other tests use the same PostgreSQL, and all requests come from one address. */
const OF_TESTS = ['MUSTER_DATABASE_POOL=5', 'MUSTER_LIMITS_SCALE=1000000'];
/** Time for a cluster to start on a busy machine, and to end. */
const LAB_TIMEOUT_MS = 10 * 60_000;
const TEST_TIMEOUT_MS = 10 * 60_000;
/** Time for a rollout, or for a node to give a process up that does not answer, on a busy machine. */
const SLOW_MS = 8 * 60_000;

const reason = reasonWithoutLab() ?? (TEST_S3 === undefined ? 'MUSTER_TEST_S3 names no S3 server' : undefined);
if (reason !== undefined) console.log(`Not tried, because ${reason}: deploy/kubernetes.`);

/** Returns the commands that the page prints for the files. */
async function readCommands(): Promise<string> {
  const page = await Bun.file(join(ROOT, 'docs/scaling.md')).text();
  const [, commands] = /^## A cluster$.*?```sh\n(.*?)```/ms.exec(page) ?? [];
  if (!commands?.includes(`kubectl apply -k ${FOLDER}`)) throw new Error('the page has no commands for a cluster');
  return commands;
}

/** Returns lines NAME=VALUE with the values of settings. Lines of other names stay as they are. */
function withValues(lines: string[], settings: Record<string, string>): string[] {
  return lines.map((line) => {
    const [name = ''] = line.split('=');
    return name in settings ? `${name}=${settings[name]}` : line;
  });
}

type Muster = (typeof MUSTERS)[number];

interface Pod {
  metadata: { name: string; uid: string; creationTimestamp: string };
  spec: { containers: { ports: { hostPort: number }[] }[] };
  status: { hostIP: string; containerStatuses: { ready: boolean; restartCount: number }[] };
}

describe.skipIf(reason !== undefined)('scaling: deploy/kubernetes in a cluster of two nodes', () => {
  const opened = new AsyncDisposableStack();
  let lab: Lab;
  let folder: string;
  let database: Database;
  let front: LoadBalancer;
  let service: { api: Api; administrator_token: string };
  let game: Awaited<ReturnType<typeof makeRoomGame>>;
  let players: [RoomPlayer, RoomPlayer];
  /** The server of their room. */
  let server_id: string;
  const machine_ids = new Map<Muster, string>();

  beforeAll(async () => {
    lab = opened.use(await startLab());
    folder = await mkdtemp(join(tmpdir(), 'muster-deploy-'));
    opened.defer(() => rm(folder, { recursive: true, force: true }));
    for (const [index, name] of MUSTERS.entries()) await lab.run('volume', `node${1 + (index % 2)}`, `data-${name}`);
    await lab.run('name', REGISTRY, lab.host);
    await Bun.write(join(folder, 'ca.crt'), AUTHORITY);
    await lab.run('registry', REGISTRY, join(folder, 'ca.crt'));
    await fillIn(await openStores());
  }, LAB_TIMEOUT_MS);
  afterAll(() => opened.disposeAsync(), LAB_TIMEOUT_MS);

  /** Opens the PostgreSQL and the S3 of the Musters, at addresses that pods reach. Returns their settings. */
  async function openStores(): Promise<Record<string, string>> {
    const { url } = opened.use(await openExternalDatabase());
    database = opened.use(openDatabase({ url }, 2));
    const { settings } = await openTestBucket();
    const reachable = async (address: string) => {
      const outside = new URL(address);
      const { port } = opened.use(await openTcpProxy({ host: outside.hostname, port: Number(outside.port) }, lab.host));
      outside.host = `${lab.host}:${port}`;
      return outside.href.replace(/\/$/, '');
    };
    return {
      ...settings,
      DATABASE_URL: await reachable(url),
      S3_ENDPOINT: await reachable(settings.S3_ENDPOINT ?? ''),
    };
  }

  /** Copies the files and changes what the page says, and what this cluster lacks. */
  async function fillIn(store_settings: Record<string, string>): Promise<void> {
    const copy = join(folder, 'repository', FOLDER);
    await cp(join(ROOT, FOLDER), copy, { recursive: true });
    const edit = async (file: string, change: (text: string) => string) => {
      const before = await Bun.file(join(copy, file)).text();
      const after = change(before);
      if (after === before) throw new Error(`${file} has nothing to change`);
      await Bun.write(join(copy, file), after);
    };
    await edit('kustomization.yaml', (text) => {
      const kustomization = parse(text);
      const [newName, newTag] = IMAGE.split(':');
      Object.assign(kustomization.images[0], { newName, newTag });
      kustomization.configMapGenerator[0].literals = withValues(kustomization.configMapGenerator[0].literals, {
        ...store_settings,
        MUSTER_KUBERNETES_IMAGE: IMAGE,
        MUSTER_KUBERNETES_REGISTRY: REGISTRY,
        MUSTER_PUBLIC_URL: `http://${lab.host}`,
        MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN,
      }).concat(`S3_PREFIX=${store_settings.S3_PREFIX}`, ...OF_TESTS);
      return stringify(kustomization);
    });
    const secrets = await Bun.file(join(copy, 'secret.example.env')).text();
    await Bun.write(join(folder, 'secret.env'), withValues(secrets.trim().split('\n'), store_settings).join('\n'));
    // Kubernetes 1.20 knows this API by its earlier version, and no ranges of ports.
    await edit('disruption-budget.yaml', (text) => text.replace('policy/v1', 'policy/v1beta1'));
    await edit('network-policies.yaml', (text) => text.replace(/^ +endPort: \d+\n/gm, ''));
  }

  const environment = () => ({
    PATH: `${lab.programs}:${process.env.PATH}`,
    KUBECONFIG: lab.operator_kubeconfig,
    HOME: folder,
  });
  const kubectl = (...args: string[]) => lab.run('kubectl', ...args);
  const readPod = async (name: string, namespace = 'muster'): Promise<Pod> =>
    JSON.parse(await kubectl('-n', namespace, 'get', 'pod', name, '-o', 'json'));
  const readPods = () => Promise.all(MUSTERS.map((name) => readPod(name)));

  /** Waits until all Musters are ready, and their containers have started this many times again. */
  async function waitUntilReady(restarts: number): Promise<void> {
    const areReady = async () => {
      const statuses = (await readPods()).flatMap(({ status }) => status.containerStatuses);
      const count = statuses.reduce((sum, { restartCount }) => sum + restartCount, 0);
      return count === restarts && statuses.every(({ ready }) => ready);
    };
    await waitFor(areReady, 'all Musters to be ready', SLOW_MS);
  }

  /** Waits until a Muster has the pods of game servers, other than an earlier one. Returns its name. */
  async function waitForHolder(earlier?: Muster): Promise<Muster> {
    const findHolder = async () => {
      const holder_id = await readHolder(database);
      return MUSTERS.find((name) => name !== earlier && machine_ids.get(name) === holder_id);
    };
    return await waitFor(findHolder, 'a Muster to hold the cluster', SLOW_MS);
  }

  /** Opens a port of this machine that leads to the API of one Muster. */
  async function openForward(name: Muster): Promise<{ url: string } & AsyncDisposable> {
    const command = ['kubectl', '-n', 'muster', 'port-forward', name, ':8080'];
    const child = Bun.spawn(command, {
      env: environment(),
      stdout: 'pipe',
      stderr: 'inherit',
    });
    const reader = child.stdout.getReader();
    const text = new TextDecoder().decode((await reader.read()).value);
    const [, address] = /from (127\.0\.0\.1:\d+)/.exec(text) ?? [];
    return {
      url: `http://${address}`,
      async [Symbol.asyncDispose]() {
        child.kill();
        await child.exited;
      },
    };
  }

  /** Checks that the game of the players goes on, and that new players may come. */
  async function expectGameGoesOn(): Promise<void> {
    await seeEachOther(...players);
    const third = await enterDirectly(await findSeat(service, game));
    expect(third.lobby_id).toBe(players[0].lobby_id);
    await seeEachOther(players[0], third);
    await third.close();
    const { run, linesOf, destroy } = serversOf(service, game);
    const other_id = await run('echo hello; exec sleep 600');
    // Its pod may ask a Muster that does not answer for its build, more than once.
    await waitFor(async () => (await linesOf(other_id)).includes('hello'), 'another server to start', SLOW_MS);
    await destroy(other_id);
  }

  /** Enters a room at the port of its node. */
  async function enterDirectly(answer: Parameters<typeof enterRoom>[0]): Promise<RoomPlayer> {
    const servers = await listServers(service, game);
    const { id } = servers.find(({ tags }: { tags: { lobby_id?: string } }) => tags.lobby_id === answer.lobby.lobby_id);
    const { spec, status } = await readPod(nameOf(id), 'muster-games');
    server_id = id;
    return await enterRoom({
      ...answer,
      ports: { game: { host: `${status.hostIP}:${spec.containers[0]?.ports[0]?.hostPort}` } },
    });
  }

  test(
    'the commands of the page run as printed, and three Musters are ready behind one Service',
    async () => {
      const commands = await readCommands();
      const { stdout } = await $`bash -euo pipefail -c ${commands}`
        .cwd(join(folder, 'repository'))
        .env(environment())
        .quiet();
      const administrator_token = stdout.toString().trimEnd().split('\n').at(-1) ?? '';
      await lab.run('service-names');
      await waitUntilReady(0);
      const address = (
        await kubectl('-n', 'muster', 'get', 'service', 'muster', '-o', 'jsonpath={.spec.clusterIP}')
      ).trim();
      const tls = { cert: CERTIFICATE, key: CERTIFICATE_KEY };
      front = opened.use(await openLoadBalancer(lab.host, 80, [address]));
      opened.use(await openLoadBalancer(lab.host, 443, [address], { to_port: 80, tls }));
      service = { api: createApi(`http://${lab.host}`), administrator_token };
      for (const name of MUSTERS) {
        machine_ids.set(name, (await kubectl('-n', 'muster', 'exec', name, '--', 'cat', '/data/node-id')).trim());
      }
      await waitForHolder();
      const { machines } = await service.api.ok('GET', '/cloud/machines', { token: administrator_token });
      expect(machines).toHaveLength(MUSTERS.length + 1);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'two players meet in a room, which is a pod, through the Service',
    async () => {
      game = await makeRoomGame(service);
      const first = await enterDirectly(await findSeat(service, game));
      players = [first, await enterDirectly(await findSeat(service, game))];
      expect(players[1].lobby_id).toBe(first.lobby_id);
      expect(first.host).toMatch(/:2[6-9]\d{3}$/);
      await seeEachOther(...players);
    },
    TEST_TIMEOUT_MS,
  );

  test.each(MUSTERS)(
    '%s leads a player to that pod by the name of its server',
    async (name) => {
      await using forward = await openForward(name);
      const { player, ports } = await findSeat(service, game);
      expect(ports.game.hostname).toBe(`${server_id}-game.${SERVERS_DOMAIN}`);
      using third = openWebSocketPlayer({
        name: `${server_id}-game`,
        url: forward.url,
        path: `/?token=${player.token}`,
      });
      const [greeting = ''] = await third.next(1);
      expect(JSON.parse(String(greeting)).lobby).toBe(players[0].lobby_id);
      third.socket.close();
      await third.closed;
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'nodes pull an uploaded image at the public name, by https, of any Muster',
    async () => {
      const content = await packImage('echo hello; exec sleep 600', 'room:1');
      const build = await uploadBuild(service.api, game, { image_tag: 'room:1', path: 'image.tar', content });
      const { bodyOf, create, waitForLines, destroy } = serversOf(service, game);
      const ids: string[] = [];
      for (const _ of MUSTERS) ids.push((await create(await bodyOf(build))).body.server.id);
      for (const id of ids) {
        const [line] = await waitForLines(id, 1);
        expect(line).toBe('hello');
        await destroy(id);
      }
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'a rollout restarts one Muster after the other, and the game goes on',
    async () => {
      const before = await readPods();
      await kubectl('-n', 'muster', 'rollout', 'restart', 'statefulset/muster');
      const rollout = kubectl('-n', 'muster', 'rollout', 'status', 'statefulset/muster');
      const is_over = rollout.then(() => true);
      do await seeEachOther(...players);
      while (!(await Promise.race([is_over, Bun.sleep(100).then(() => false)])));
      const after = await readPods();
      const uids = (pods: Pod[]) => pods.map(({ metadata }) => metadata.uid);
      expect(uids(after).filter((uid) => uids(before).includes(uid))).toEqual([]);
      const started = after.map(({ metadata }) => metadata.creationTimestamp);
      expect(started.toReversed()).toEqual(started.toSorted());
      await waitUntilReady(0);
      await expectGameGoesOn();
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'a Muster that is killed loses no game',
    async () => {
      const holder = await waitForHolder();
      process.kill(findContainerProcess((await readPod(holder)).metadata.uid, 'muster'), 'SIGKILL');
      await seeEachOther(...players);
      await waitUntilReady(1);
      await expectGameGoesOn();
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'a Muster that does not answer loses no game: another one takes the pods, and its node starts it anew',
    async () => {
      const holder = await waitForHolder();
      process.kill(findContainerProcess((await readPod(holder)).metadata.uid, 'muster'), 'SIGSTOP');
      await waitForHolder(holder);
      await seeEachOther(...players);
      const isReady = async () => (await readPod(holder)).status.containerStatuses[0]?.ready;
      await waitFor(async () => !(await isReady()), 'the Service to leave it out', SLOW_MS);
      front.endConnections();
      await expectGameGoesOn();
      await waitUntilReady(2);
      await expectGameGoesOn();
      for (const player of players) await player.close();
    },
    TEST_TIMEOUT_MS,
  );
});
