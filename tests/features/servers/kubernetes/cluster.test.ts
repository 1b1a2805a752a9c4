import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Observation } from '../../../../src/features/servers/runtimes/runtime.ts';
import { makeGame, uploadScript } from '../../../support/game.ts';
import { find } from '../../../support/game-server.ts';
import { clusterSettings, deletePod, inspectPod, kubernetesRuntime } from '../../../support/kubernetes/kubernetes.ts';
import { type Lab, reasonWithoutLab, startLab } from '../../../support/kubernetes/kubernetes-lab.ts';
import { enterRoom, makeRoomGame } from '../../../support/lobbies/room.ts';
import { describeRuntime } from '../../../support/runtimes/runtime-suite.ts';
import { openTestRuntime, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { serversOf, waitForEndEvent } from '../../../support/servers.ts';
import { openTestService } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';
import { describeAgones } from './agones.ts';
import { describeImages } from './images.ts';
import { describeKills } from './kills.ts';
import { describeSharing } from './sharing.ts';

/** Time for a cluster to start on a busy machine, and to end. */
const LAB_TIMEOUT_MS = 10 * 60_000;
/** Time for a test that waits for the cluster to notice something. */
const SLOW_MS = 240_000;
const AWAY_MS = 60_000;

const reason = reasonWithoutLab();
if (reason !== undefined) console.log(`Not tried, because ${reason}: pods of Kubernetes.`);

describe.skipIf(reason !== undefined)('kubernetes', () => {
  let lab: Lab;
  let opened: TestRuntime;
  const kind = kubernetesRuntime(() => lab);
  beforeAll(async () => {
    lab = await startLab();
    opened = await openTestRuntime(kind);
  }, LAB_TIMEOUT_MS);
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await kind[Symbol.asyncDispose]();
    await lab[Symbol.asyncDispose]();
  }, LAB_TIMEOUT_MS);

  /** Waits until a server, running or not, is observed in a way. */
  async function waitForObservation<Is extends Observation['is']>(server_id: string, is: Is) {
    return await waitFor(
      async () => {
        const seen = await opened.observe({ server_id, identity: undefined });
        return seen.is === is && (seen as Extract<Observation, { is: Is }>);
      },
      `the server to be ${is}`,
      SLOW_MS,
    );
  }

  describeRuntime(kind);
  describeKills(() => lab);
  describeSharing(() => lab);
  describeAgones(() => lab);
  describeImages(() => lab);

  describe('a server in a pod', () => {
    test('has no rights: no account of the cluster, no root, no capability, no file of the image or its build to write', async () => {
      const script = 'id -u; cat /proc/self/status; touch /bin/x /build/x $HOME/x; ls $HOME; ls /var/run/secrets';
      const text = await opened.runOnce(script);
      expect(text.split('\n')[0]).toBe('10001');
      for (const fact of [/^CapEff:\t0+$/m, /^CapBnd:\t0+$/m, /^NoNewPrivs:\t1$/m, /^Seccomp:\t2$/m])
        expect(text).toMatch(fact);
      expect(text).toMatch(/\/bin\/x: Read-only file system/);
      expect(text).toMatch(/\/build\/x: Read-only file system/);
      expect(text).toMatch(/^x$/m);
      expect(text).toMatch(/\/var\/run\/secrets: No such file/);
    });

    test('is reached at its port of the node', async () => {
      const public_port = 26_000 + Math.floor(Math.random() * 1_000);
      const ports = { game: { protocol: 'tcp', routing: 'host', internal_port: public_port, public_port } } as const;
      const server = await opened.run(`while :; do echo hello | nc -l -p ${public_port}; done`, { ports });
      const seen = await waitForObservation(server.server_id, 'running');
      const read = async () => {
        const { promise, resolve } = Promise.withResolvers<string>();
        await Bun.connect({
          hostname: seen.host,
          port: public_port,
          socket: { data: (_, bytes) => resolve(bytes.toString()), close: () => resolve(''), error: () => resolve('') },
        });
        return await promise;
      };
      await waitFor(async () => (await read().catch(() => '')) === 'hello\n', 'its port to answer');
      await opened.remove(server);
    });

    test('that exceeds its memory ends with that reason', async () => {
      const server = await opened.run('sleep 0.1; exec dd if=/dev/zero of=/dev/null bs=300M count=1', {
        resources: { cpu: 500, memory: 64 },
      });
      const end = await opened.waitForEnd(server);
      expect(end).toMatchObject({ exit_signal: 'SIGKILL', reason: 'it exceeded its memory of 64 MiB' });
      await opened.remove(server);
    });

    test('leaves no process without a parent, and ends with all that it started', async () => {
      const server = await opened.run('(sleep 600 &) ; (exec sh -c "exit 0" &) ; echo ready; exec sleep 600');
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      await opened.kill(server);
      expect(await opened.observe(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
      await opened.remove(server);
      await waitFor(async () => (await inspectPod(lab, server.server_id)) === undefined, 'its pod to be removed');
    });

    test('has one pod, also after two concurrent starts', async () => {
      const order = await opened.orderOf('echo once; exec sleep 600');
      const other = await opened.reopen();
      const both = await Promise.all([opened.runtime.start(order), other.start(order)]);
      expect(both.map(({ identity }) => identity)).toEqual([both[0]?.identity ?? {}, both[0]?.identity ?? {}]);
      const server = await opened.start(order);
      await waitFor(async () => (await opened.output(server)) === 'once\n', 'its output');
      await opened.remove(server);
    });

    test('whose pod is deleted by others can handle SIGTERM, and the reason is known', async () => {
      const server = await opened.run(`trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`);
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      await deletePod(lab, server.server_id);
      const end = await opened.waitForEnd(server);
      expect(end).toMatchObject({ exit_code: 7, exit_signal: null, reason: 'its pod was deleted from the cluster' });
      expect(await opened.output(server)).toBe('ready\nbye\n');
      await opened.remove(server);
    });

    test('that no node can take says why, and waits', async () => {
      const order = await opened.orderOf('', { resources: { cpu: 4_000_000, memory: 256 } });
      await opened.runtime.start(order);
      const waiting = { server_id: order.server_id, identity: undefined };
      const reason = await waitFor(async () => {
        const seen = await opened.observe(waiting);
        return seen.is === 'pending' && seen.reason.startsWith('no node has room for it') && seen.reason;
      }, 'the reason');
      expect(reason).toContain('Insufficient cpu');
      await opened.remove(waiting);
      expect(await opened.observe(waiting)).toEqual({ is: 'absent' });
    });

    test('with a port range is refused, because its pod could not have it', async () => {
      const ports = { game: { protocol: 'udp', routing: 'host', port_range: { min: 5_000, max: 5_010 } } } as const;
      const order = await opened.orderOf('', { ports });
      await expect(opened.runtime.start(order)).rejects.toThrow('a pod of the cluster has no port ranges');
      await opened.remove({ server_id: order.server_id, identity: undefined });
    });

    test('of a machine that is lost is found and removed by another, which leaves its own', async () => {
      await using lost_kind = kubernetesRuntime(() => lab);
      await using lost = await openTestRuntime(lost_kind);
      const left = await lost.run('exec sleep 600');
      const own = await opened.run('exec sleep 600');
      const { other_machines } = opened.runtime;
      expect(await other_machines?.list([lost_kind.machine_id, crypto.randomUUID()])).toEqual([left.server_id]);
      await other_machines?.remove(left.server_id);
      expect(await inspectPod(lab, left.server_id)).toBeUndefined();
      await waitFor(async () => (await lost.observe(left)).is !== 'running', 'its machine to know it');
      expect(await other_machines?.list([lost_kind.machine_id])).toEqual([]);
      expect(await opened.observe(own)).toMatchObject({ is: 'running' });
      await opened.remove(own);
    });

    test('goes on through a restart of the service, which misses neither output nor end', async () => {
      const script = 'i=0; while [ $i -lt 100 ]; do i=$((i + 1)); echo $i; sleep 0.05; done; exit 9';
      await using own_kind = kubernetesRuntime(() => lab);
      await using own = await openTestRuntime(own_kind);
      const server = await own.run(script);
      await waitFor(async () => (await own.output(server)) !== '', 'its first line');
      await own_kind.restartPort();
      const runtime = await own.reopen();
      expect(await own.waitForEnd(server, runtime)).toEqual({ is: 'ended', exit_code: 9, exit_signal: null });
      const all = { from: undefined, bytes_max: 100_000, backlog_bytes_max: 100_000 };
      const { bytes } = await runtime.readOutput(server, 'std_out', all);
      const numbers = Buffer.from(bytes).toString().trimEnd().split('\n').map(Number);
      expect(numbers).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
      await own.remove(server, runtime);
    });
  });

  test(
    'an image is refused without a registry for nodes, and a script runs as a pod',
    async () => {
      await using muster = await openTestService(clusterSettings(lab));
      const game = await makeGame(muster.api, muster.administrator_token);
      const script = 'console.log("hello", process.env.SERVICE_API_ENDPOINT); process.exit(5)';
      const build = await uploadScript(muster.api, game, script);
      const servers = serversOf(muster, game);
      const { id } = (await servers.create(await servers.bodyOf(build))).body.server;
      expect(await waitForEndEvent(muster, id)).toMatchObject({ exit_code: 5, failure: null });
      expect(await servers.linesOf(id)).toEqual([`hello http://${lab.host}:${muster.config.port}`]);
      await waitFor(async () => (await inspectPod(lab, id)) === undefined, 'its pod to be removed');
      const image_file = { path: 'image.tar', content_length: 1 };
      const builds = `/games/${game.game_id}/environments/${game.namespace_id}/builds`;
      const body = { name: 'image', kind: 'docker_image', image_tag: 'a:1', image_file };
      const refused = await muster.api.post(`${builds}/prepare`, game.cloud_token, body);
      expect([refused.status, refused.body.code]).toEqual([400, 'BUILDS_KIND_NOT_AVAILABLE']);
      expect(refused.body.message).toContain('MUSTER_KUBERNETES_REGISTRY is not set');
    },
    SLOW_MS,
  );

  test(
    'two players meet in a room, which is a pod, at an address that they got from find',
    async () => {
      await using muster = await openTestService(clusterSettings(lab));
      const game = await makeRoomGame(muster);
      const first = await find(muster, game, { prevent_auto_create_lobby: false });
      expect(first.body.ports?.game?.hostname).toMatch(lab.node_address);
      const players = [await enterRoom(first.body), await enterRoom((await find(muster, game, {})).body)];
      expect(players[1]?.lobby_id).toBe(players[0]?.lobby_id ?? '');
      await waitFor(() => players.every(({ positions }) => Object.keys(positions).length === 2), 'both to see both');
      for (const player of players) await player.close();
    },
    SLOW_MS,
  );

  test(
    'while the API server does not answer for a minute, servers go on and end as requested, and starts wait for it',
    async () => {
      const counting = await opened.run('i=0; while :; do i=$((i + 1)); echo $i; sleep 0.1; done');
      const ending = await opened.run(`trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`);
      const killed = await opened.run('echo ready; exec sleep 600');
      for (const server of [ending, killed]) {
        await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      }
      const order = await opened.orderOf('echo late; exec sleep 600');
      await lab.run('pause');
      const away_since = performance.now();
      try {
        await opened.stop(ending);
        expect(await opened.waitForEnd(ending)).toEqual({ is: 'ended', exit_code: 7, exit_signal: null });
        expect(await opened.output(ending)).toBe('ready\nbye\n');
        await opened.kill(killed);
        expect(await opened.observe(killed)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
        await expect(opened.runtime.start(order)).rejects.toThrow('The cluster that runs game servers does not answer');
        await Bun.sleep(AWAY_MS - (performance.now() - away_since));
        const before = (await opened.output(counting)).length;
        await waitFor(async () => (await opened.output(counting)).length > before, 'its output to go on');
        expect(await opened.observe(counting)).toMatchObject({ is: 'running' });
      } finally {
        await lab.run('resume');
      }
      // The next round of a service does the same.
      const late = await waitFor(() => opened.start(order).catch(() => undefined), 'the server to start', SLOW_MS);
      await waitFor(async () => (await opened.output(late)) === 'late\n', 'its output');
      expect(await opened.observe(counting)).toMatchObject({ is: 'running' });
      for (const server of [ending, killed, late, counting]) {
        await waitFor(
          () =>
            opened.remove(server).then(
              () => true,
              () => false,
            ),
          'its pod to be removed',
          SLOW_MS,
        );
        expect(await inspectPod(lab, server.server_id)).toBeUndefined();
      }
    },
    SLOW_MS,
  );

  // The last one: the node does not answer for a while.
  test(
    'a server whose node is lost is unreachable, and can be given up',
    async () => {
      const server = await opened.run('exec sleep 600');
      const node = (await inspectPod(lab, server.server_id))?.spec.nodeName ?? '';
      await lab.run('cut', node);
      try {
        await waitForObservation(server.server_id, 'unreachable');
        await opened.kill(server);
        expect(await opened.observe(server)).toMatchObject({ is: 'ended', reason: 'its node was lost' });
        await opened.remove(server);
        expect(await inspectPod(lab, server.server_id)).toBeUndefined();
      } finally {
        await lab.run('heal', node);
      }
    },
    SLOW_MS,
  );
});
