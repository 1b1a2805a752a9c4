import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmod, chown, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { EngineNetworks } from '../../../src/features/servers/runtimes/engine/engine-network.ts';
import type { EngineRuntimeOptions } from '../../../src/features/servers/runtimes/engine/engine-runtime.ts';
import type { StartOrder } from '../../../src/features/servers/runtimes/runtime.ts';
import type { ServerPort } from '../../../src/features/servers/tables.ts';
import { forEachAtOnce } from '../../../src/platform/pacing.ts';
import { openExternalDatabase } from '../../support/database/database.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { makeGame, uploadBuild } from '../../support/game.ts';
import { expectDocumented } from '../../support/isolation/documented.ts';
import { LEVELS } from '../../support/isolation/levels.ts';
import { probe } from '../../support/isolation/probing.ts';
import { countDescriptors, countZombies, groupsOf, mountsIn } from '../../support/leftovers.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { makeHome } from '../../support/program.ts';
import { IMAGE_USER, makeImage, packImage } from '../../support/runtimes/containers.ts';
import {
  ENGINES,
  inspect,
  listLeftovers,
  listLinks,
  optionsIn,
  reasonWithoutEngine,
  runtimeOf,
  startEngine,
  type TestEngine,
} from '../../support/runtimes/engines.ts';
import { describeRuntime } from '../../support/runtimes/runtime-suite.ts';
import { NO_DISK_LIMIT, openTestRuntime, type TestRuntime } from '../../support/runtimes/runtimes.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { openTestService } from '../../support/service.ts';
import { packTar, type TarEntry } from '../../support/tar.ts';
import { waitFor } from '../../support/wait.ts';

/** Containers that start and end in a row, and how many of them at one time. */
const STARTS = 40;
const CONCURRENT_STARTS = 4;
/** Connections to the engine that stay open for the next call. */
const DESCRIPTORS_MAX = 8;
/** Other programs of the machine may have some at any time. */
const ZOMBIES_OF_OTHERS_MAX = 8;

// Two engines and the suite of runtimes on each take minutes, so only a run at full length tries them.
for (const name of ENGINES) {
  const reason = IS_FULL_LENGTH ? reasonWithoutEngine(name) : 'only a run at full length tries it';
  if (reason !== undefined) console.log(`Not tried, because ${reason}: containers of ${name}.`);

  describe.skipIf(reason !== undefined)(name, () => {
    let engine: TestEngine;
    let opened: TestRuntime;
    let api: ReturnType<typeof Bun.serve>;
    beforeAll(async () => {
      engine = await startEngine(name);
      api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('the API') });
      opened = await openTestRuntime(kindWith({ api_url: api.url.origin }));
    }, 300_000);
    afterAll(async () => {
      await opened[Symbol.asyncDispose]();
      await api.stop(true);
      await engine[Symbol.asyncDispose]();
    }, 300_000);

    const kindWith = (changes: Partial<EngineRuntimeOptions> = {}) => runtimeOf(name, () => engine, changes);

    /** Returns why a server does not start: its start fails, or it has ended, which a busy machine notices later. */
    async function refusalOf(order: StartOrder, by: TestRuntime): Promise<string> {
      try {
        await by.runtime.start(order);
      } catch (error) {
        return String(error);
      }
      return (await by.waitForEnd({ server_id: order.server_id, identity: undefined })).reason ?? '';
    }

    describeRuntime(kindWith());

    describe('a server in a container of the engine', () => {
      test('is the user of its image, without capabilities and with a filter of system calls', async () => {
        expect(await opened.runOnce('id; pwd; cat /proc/self/status')).toMatch(
          new RegExp(
            `^uid=${IMAGE_USER} gid=${IMAGE_USER}.*\n/game\n.*CapPrm:\t0{16}\nCapEff:\t0{16}\nCapBnd:\t0{16}.*NoNewPrivs:\t1\nSeccomp:\t2\n`,
            's',
          ),
        );
      });

      test('is in the additional groups of its image, which may open their files', async () => {
        const user = { uid: IMAGE_USER, gid: IMAGE_USER, additionalGids: [2_001, 2_002] };
        const build = await makeImage(opened.directory, 'id -G; cat /game/secret', { user });
        const secret = join(build.directory, 'rootfs/game/secret');
        await Bun.write(secret, 'of the group\n');
        await chown(secret, 0, 2_002);
        await chmod(secret, 0o040);
        expect(await opened.runOnce('', { build })).toBe(`${IMAGE_USER} 2001 2002\nof the group\n`);
      });

      test('has the environment of its image, the given one over it, and nothing of the service', async () => {
        const build = await makeImage(opened.directory, '', {
          args: ['/bin/env'],
          env: ['PATH=/bin', 'HOME=/home', 'MODE=image'],
        });
        const lines = (await opened.runOnce('', { build, environment: { MODE: 'given', TOKEN: 'a=b' } })).split('\n');
        const own = lines.filter((line) => !/^(HOSTNAME=server|container=podman|TERM=xterm|)$/.test(line));
        expect(own.sort()).toEqual(['HOME=/home', 'MODE=given', 'PATH=/bin', 'TOKEN=a=b']);
      });

      test.each(['mount -t tmpfs none /tmp', 'unshare -n true', 'unshare -U true', 'echo 1 > /proc/sys/kernel/panic'])(
        'cannot do this, also as root: %s',
        async (script) => {
          const build = await makeImage(opened.directory, script, { user: { uid: 0, gid: 0 } });
          expect(await opened.runOnce('', { build })).toMatch(/permission denied|not permitted|Read-only file system/i);
        },
      );

      test('listens on the port that its developer chose, and reaches the API', async () => {
        const public_port = findFreePort();
        const page: ServerPort = { protocol: 'tcp', routing: 'host', internal_port: 80, public_port };
        const script = `address=\${SERVICE_API_ENDPOINT#http://}
          printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc "\${address%:*}" "\${address#*:}"; echo
          while :; do echo hello | nc -l -p 80; done`;
        const environment = { SERVICE_API_ENDPOINT: api.url.origin };
        const server = await opened.run(script, { ports: { page }, environment });
        expect(await waitFor(() => readPort(public_port), 'the answer')).toBe('hello\n');
        await waitFor(async () => (await opened.output(server)).endsWith('the API\n'), 'the answer of the API');
        await opened.remove(server);
        expect(await readPort(public_port)).toBeUndefined();
      });

      test.skipIf(name === 'podman')('does not reach another server', async () => {
        const other = await opened.run('ip=$(head -n 1 /etc/hosts); while :; do echo secret | nc -l -p 80; done');
        const { NetworkSettings } = await inspect(engine, other.server_id);
        const [network] = Object.values(NetworkSettings.Networks);
        expect(network?.IPAddress).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
        expect(await opened.runOnce(`nc -w 2 ${network?.IPAddress} 80; echo "code $?"`)).toMatch(/code 1/);
        await opened.remove(other);
      });

      test('has on the disk what it wrote, without its image and what is in memory', async () => {
        const script = `dd if=/dev/zero of=/tmp/memory bs=1M count=8; dd if=/dev/zero of=/file bs=1M count=5
          echo written; sleep 600`;
        const build = await makeImage(opened.directory, script, { user: { uid: 0, gid: 0 } });
        const server = await opened.run('', { build });
        await waitFor(async () => (await opened.output(server)).includes('written'), 'the files');
        const measured = await opened.runtime.measureDisk?.([server], NO_DISK_LIMIT);
        expect(Math.floor((measured?.get(server.server_id)?.bytes ?? 0) / 1024 ** 2)).toBe(5);
        await opened.remove(server);
      });

      test('that takes more memory than it may is killed', async () => {
        const order = { resources: { cpu: 1_000, memory: 32 } };
        const server = await opened.run('x=$(yes | head -c 100000000); echo survived', order);
        // Podman does not notice it where control groups are of version 1.
        const reason = name === 'docker' ? { reason: 'it exceeded its memory of 32 MiB' } : {};
        expect(await opened.waitForEnd(server)).toMatchObject({ exit_signal: 'SIGKILL', ...reason });
        expect(await opened.output(server)).toBe('');
      });

      test('starts a limited number of processes', async () => {
        const script = 'n=0; while [ $n -lt 600 ]; do sleep 600 & n=$((n+1)); done; echo all';
        expect(await opened.runOnce(script, { resources: { cpu: 1_000, memory: 256 } })).toContain("can't fork");
      });

      test('has only its own processes counted, also if another server has the user of its image', async () => {
        const script = 'n=0; while [ $n -lt 400 ]; do sleep 600 & n=$((n+1)); done; echo all; sleep 600';
        const build = await makeImage(opened.directory, script);
        const order = { build, resources: { cpu: 1_000, memory: 256 } };
        for (const server of [await opened.run('', order), await opened.run('', order)]) {
          const written = async () => (await opened.output(server)) + (await opened.output(server, 'std_err'));
          await waitFor(async () => (await written()) !== '', 'its processes');
          expect(await written()).toBe('all\n');
        }
        await opened.removeAll();
      });

      // Podman does not say how much of the memory is cached files.
      test.skipIf(name === 'podman')('has its memory counted without cached files', async () => {
        const script = 'dd if=/dev/zero of=/file bs=1M count=64; echo written; sleep 600';
        const build = await makeImage(opened.directory, script, { user: { uid: 0, gid: 0 } });
        const server = await opened.run('', { build, resources: { cpu: 1_000, memory: 256 } });
        await waitFor(async () => (await opened.output(server)).includes('written'), 'the file');
        const used = (await opened.runtime.readUsage?.([server]))?.get(server.server_id);
        expect(used?.memory_bytes).toBeLessThan(32 * 1_024 ** 2);
        await opened.remove(server);
      });

      test('has its processor time counted', async () => {
        const server = await opened.run('while :; do :; done');
        await waitFor(async () => (await opened.readProcessorTime(server)) > 200, 'its processor time');
        await opened.remove(server);
      });

      test('writes to memory only if containers are read-only', async () => {
        await using closed = await openTestRuntime(kindWith({ has_read_only_root: true }));
        const script = 'echo a > /game/file; echo b > /tmp/file; cat /tmp/file';
        const build = await makeImage(closed.directory, script, { user: { uid: 0, gid: 0 } });
        const server = await closed.run('', { build });
        await closed.waitForEnd(server);
        expect(await closed.output(server)).toBe('b\n');
        expect(await closed.output(server, 'std_err')).toContain('Read-only file system');
      });

      test('does not start if isolation is required, because connections are not restricted', async () => {
        await using strict = await openTestRuntime(kindWith({ is_isolation_required: true }));
        const order = await strict.orderOf('exec sleep 600');
        expect(await refusalOf(order, strict)).toContain('the refusal of connections to private networks');
      });

      test('whose port is taken does not start, and is seen to have ended', async () => {
        const taken = Bun.serve({ hostname: '0.0.0.0', port: 0, fetch: () => new Response('taken') });
        const page: ServerPort = {
          protocol: 'tcp',
          routing: 'host',
          internal_port: 80,
          public_port: Number(taken.port),
        };
        const order = await opened.orderOf('exec sleep 600', { ports: { page } });
        expect(await refusalOf(order, opened)).toContain('address already in use');
        const server = { server_id: order.server_id, identity: undefined };
        expect(await opened.observe(server)).toMatchObject({ is: 'ended', exit_code: null, exit_signal: null });
        await opened.remove(server);
        await taken.stop(true);
      });

      test('is not touched, and its name is not used, if it belongs to another Muster', async () => {
        const order = await opened.orderOf('exec sleep 600');
        const server = await opened.start(order);
        await using other = await openTestRuntime(kindWith());
        expect(await other.observe(server)).toEqual({ is: 'absent' });
        expect(await other.runtime.list()).toEqual([]);
        await other.runtime.kill([server]);
        await other.runtime.remove(server.server_id);
        expect(await refusalOf(order, other)).toContain('is not of this Muster');
        expect((await opened.observe(server)).is).toBe('running');
        await rm(join(other.directory, 'engine', server.server_id), { recursive: true });
        await opened.remove(server);
      });

      test('is unreachable while the engine is stopped, and goes on without losing output', async () => {
        const server = await opened.run('n=0; while :; do n=$((n+1)); echo $n; sleep 0.02; done');
        await waitFor(async () => (await opened.output(server)).length > 20, 'its output');
        const stopped_at = performance.now();
        await engine.stop();
        const readLoss = async () => {
          const seen = await opened.observe(server);
          return seen.is === 'unreachable' ? seen.for_ms : undefined;
        };
        const for_ms = await waitFor(readLoss, 'the engine to be missed');
        expect(for_ms).toBeLessThanOrEqual(performance.now() - stopped_at);
        expect(await readLoss()).toBeGreaterThan(for_ms);
        expect(await opened.runtime.kill([server])).toEqual(new Set());
        expect(await opened.runtime.stop(server)).toBe(false);
        const late = await opened.orderOf('echo late; exec sleep 600');
        await expect(opened.runtime.start(late)).rejects.toThrow('The server starts once the engine answers.');
        await engine.start();
        await opened.runtime.start(late);
        const waited = { server_id: late.server_id, identity: undefined };
        await waitFor(async () => (await opened.output(waited)) === 'late\n', 'the output of the server that waited');
        await opened.remove(waited);
        expect(await opened.observe(server)).toMatchObject({ is: 'running' });
        const written = (await opened.output(server)).length;
        await waitFor(async () => {
          // Each observation continues the copying, after a pause.
          await opened.observe(server);
          return (await opened.output(server)).length > written + 20;
        }, 'more output');
        const lines = (await opened.output(server)).trimEnd().split('\n').map(Number);
        expect(lines).toEqual(lines.map((_, index) => index + 1));
        await opened.remove(server);
      });

      test.each([0, 50, 100, 200, 300])(
        'starts once, also if the service is killed %d ms after it began to start it',
        async (delay_ms) => {
          const order = await opened.orderOf('echo started; exec sleep 600');
          const child = Bun.spawn(
            [process.execPath, join(import.meta.dir, '../../support/runtimes/engine-starter.ts')],
            {
              stdin: new Blob([JSON.stringify({ socket: engine.socket, options: optionsIn(opened.directory), order })]),
              stdout: 'pipe',
            },
          );
          await child.stdout.getReader().read();
          await Bun.sleep(delay_ms);
          child.kill('SIGKILL');
          await child.exited;
          const server = await opened.start(order);
          await waitFor(async () => (await opened.output(server)) === 'started\n', 'its first line');
          const containers = (await listLeftovers(engine)).filter((one) => one.startsWith('/containers'));
          expect(containers.filter((one) => one.includes(order.server_id))).toHaveLength(1);
          await opened.remove(server);
        },
      );

      // Podman's own network is always there.
      test.skipIf(name === 'podman')('starts, also if two services created a network at once', async () => {
        const options = { client: engine.client, node_id: optionsIn(opened.directory).node_id };
        const services = [new EngineNetworks(options), new EngineNetworks(options)];
        await Promise.all(services.map((networks) => networks.ensure({ is_podman: false })));
        const { node_id } = options;
        const ours = async () =>
          (await listLeftovers(engine)).filter((one) => one.startsWith('/networks') && one.includes(node_id));
        expect((await ours()).length).toBeGreaterThanOrEqual(services.length);
        const server = await opened.run('echo started; exec sleep 600');
        await waitFor(async () => (await opened.output(server)) === 'started\n', 'its first line');
        await opened.remove(server);
        await opened.removeAll();
        expect(await ours()).toEqual([]);
      });

      test('continues an unfinished start', async () => {
        const order = await opened.orderOf('echo started; exec sleep 600');
        const server = await opened.start(order);
        const { Image } = await inspect(engine, server.server_id);
        await opened.remove(server);
        // A service that was killed has created the container, and has not started it.
        const Labels = { 'muster.machine': opened.directory.split('/').at(-1), 'muster.server': order.server_id };
        const body = { Image, Entrypoint: ['/bin/sh', '-c', 'exit 1'], Labels };
        const query = { name: `muster-${order.server_id}` };
        await engine.client.call({ method: 'POST', path: '/containers/create', query, body });
        await Bun.write(join(opened.directory, 'engine', order.server_id, 'std_out'), '');
        expect(await opened.observe({ ...server, identity: undefined })).toEqual({ is: 'absent' });
        // Its start was recorded by the service that was killed.
        const interrupted = { is: 'ended', is_disruption: true, reason: expect.stringContaining('Muster restarted') };
        expect(await opened.observe(server)).toMatchObject(interrupted);
        expect(await opened.runtime.list()).toContainEqual({ server_id: order.server_id, identity: undefined });
        await opened.start(order);
        await waitFor(async () => (await opened.output(server)) === 'started\n', 'its own program');
        await opened.remove(server);
      });

      test('shares the image of its build, which is removed after the files of the build', async () => {
        const build = await makeImage(opened.directory, 'exec sleep 600');
        const imagesOf = async () =>
          (await listLeftovers(engine)).filter(
            (one) => one.startsWith('/images') && one.includes(encodeURIComponent(build.directory)),
          );
        const first = await opened.run('', { build });
        const second = await opened.run('', { build });
        expect(await imagesOf()).toHaveLength(1);
        await rm(build.directory, { recursive: true });
        await opened.remove(first);
        expect(await imagesOf()).toHaveLength(1);
        await opened.remove(second);
        expect(await imagesOf()).toHaveLength(0);
      });
    });

    test(`${STARTS} containers that start and end leave nothing`, async () => {
      const countRules = async () => (await Bun.$`iptables-save`.quiet().text()).split('\n').length;
      const build = await makeImage(opened.directory, 'sleep 600 & [ "$MODE" = crash ] && exit 3; exec sleep 600');
      const ids = new Set<string>();
      const runOne = async (index: number) => {
        const page: ServerPort = {
          protocol: 'tcp',
          routing: 'host',
          internal_port: 80,
          public_port: findFreePort(),
        };
        const environment = { MODE: index % 3 === 0 ? 'crash' : 'play' };
        const server = await opened.run('', { build, ports: { page }, environment });
        ids.add(server.server_id);
        // Some end by themselves, some are stopped, some are killed.
        if (index % 3 === 1) await opened.stop(server);
        if (index % 3 < 2) await opened.waitForEnd(server);
        await opened.remove(server);
      };
      // The first containers make the network, and open descriptors that stay open.
      const lasting = await opened.run('exec sleep 600');
      for (let index = 0; index < 3; index += 1) await runOne(index);
      const links = listLinks();
      const rules = await countRules();
      const mounts = mountsIn(engine.directory, process.pid);
      const descriptors = countDescriptors(process.pid);
      const zombies = countZombies();

      const indexes = Array.from({ length: STARTS }, (_, index) => index);
      await forEachAtOnce(indexes, CONCURRENT_STARTS, runOne);

      expect(await opened.runtime.list()).toEqual([{ server_id: lasting.server_id, identity: undefined }]);
      const left = (await listLeftovers(engine)).filter((one) => [...ids].some((id) => one.includes(id)));
      expect(left).toEqual([]);
      expect([...ids].flatMap(findProcessesOf)).toEqual([]);
      await waitFor(() => listLinks().every((link) => links.includes(link)), 'no network device to be left');
      await waitFor(async () => (await countRules()) <= rules, 'no rule of the firewall to be left');
      await waitFor(() => mountsIn(engine.directory, process.pid).length <= mounts.length, 'no mount to be left');
      await waitFor(() => groupsOf(ids).length === 0, 'no control group to be left');
      await waitFor(() => countDescriptors(process.pid) <= descriptors + DESCRIPTORS_MAX, 'no descriptor to be left');
      await waitFor(() => countZombies() <= zombies + ZOMBIES_OF_OTHERS_MAX, 'no zombie to be left');
      await opened.remove(lasting);
    }, 600_000);

    test('an archive with isolation container runs on the base image, in /server', async () => {
      const base = join(opened.directory, 'base.tar');
      await Bun.write(base, await packImage('', 'base:1'));
      await using muster = await openTestService({
        MUSTER_CONTAINERS: 'on',
        MUSTER_CONTAINER_BASE: base,
        MUSTER_CONTAINER_ENGINE: `unix://${engine.socket}`,
      });
      const game = await makeGame(muster.api, muster.administrator_token);
      const script = '#!/bin/sh\nid -u; pwd; exit 5';
      const build = await uploadBuild(muster.api, game, {
        kind: 'archive',
        path: 'a.tar',
        command: ['./run.sh'],
        isolation: 'container',
        content: await packTar([{ name: 'run.sh', content: script, mode: 0o755 }]),
      });
      const servers = serversOf(muster, game);
      const { id } = (await servers.create(await servers.bodyOf(build))).body.server;
      expect(await waitForEndEvent(muster, id)).toMatchObject({ exit_code: 5, failure: null });
      expect(await servers.linesOf(id)).toEqual([String(IMAGE_USER), '/server']);
    }, 300_000);

    test('a hostile server can do what docs/isolation-attempts.md says, and no more', async () => {
      const level = LEVELS.find(({ containers }) => containers === name);
      if (!level) throw new Error('the engine has a level');
      const outcomes = await probe(level, { with_disk: false, engine_socket: engine.socket });
      await expectDocumented(level.name, outcomes);
    }, 600_000);

    test('a bundle that asks for privileges runs without them, through a kill of the service, and leaves nothing', async () => {
      await using database = await openExternalDatabase();
      const settings = {
        MUSTER_DEMO: 'off',
        DATABASE_URL: database.url,
        MUSTER_CONTAINER_ENGINE: `unix://${engine.socket}`,
      };
      await using home = await makeHome(settings);
      let program = await home.start();
      const game = await makeGame(program.api, program.administrator_token);
      const bundle = await uploadBuild(program.api, game, {
        path: 'oci-bundle.tar',
        content: await packHostileBundle(),
      });
      const image = await uploadBuild(program.api, game, {
        image_tag: 'game:1',
        path: 'image.tar.gz',
        content: gzipSync(await packImage(COUNT, 'game:1')),
      });
      let servers = serversOf(program, game);
      const create = async (build: string) =>
        (await servers.create(await servers.bodyOf(build))).body.server.id as string;
      const [hostile, counting] = [await create(bundle), await create(image)];
      await Promise.all([servers.waitForStart(hostile), servers.waitForStart(counting)]);
      const hostile_lines = await servers.waitForLines(hostile, 5);
      expect(hostile_lines.slice(0, 3)).toEqual(['0', 'CapEff:\t0000000000000000', 'NoNewPrivs:\t1']);
      expect(hostile_lines).not.toContain('host');
      const { HostConfig, Config } = await inspect(engine, hostile);
      const node_id = Config.Labels['muster.machine'] ?? '';
      expect(HostConfig).toMatchObject({ Privileged: false, Memory: 64 * 1024 ** 2, PidsLimit: 512 });
      expect([HostConfig.Binds ?? [], HostConfig.Devices ?? []]).toEqual([[], []]);
      expect(['', 'private']).toContain(HostConfig.PidMode);
      expect(node_id).not.toBe('');
      await servers.waitForLines(counting, 5);
      await program.stop('SIGKILL');
      expect((await inspect(engine, counting)).State.Running).toBe(true);
      program = await home.start();
      servers = serversOf(program, game);
      await servers.destroy(counting);
      await waitFor(async () => (await servers.linesOf(counting)).at(-1) === 'end', 'its last line');
      const lines = (await servers.allLinesOf(counting)).slice(0, -1).map(Number);
      expect(lines).toEqual(lines.map((_, index) => index + 1));
      expect((await servers.linesOf(counting, 'std_err')).join('')).toContain('isolation is partial');
      await servers.destroy(hostile);
      await Promise.all([servers.waitForEnd(hostile), servers.waitForEnd(counting)]);
      await waitFor(
        async () => (await readdir(join(home.data_directory, 'engine'))).length === 0,
        'their files to be gone',
      );
      await waitFor(async () => {
        const left = (await listLeftovers(engine)).filter((one) => one.includes(node_id));
        return left.every((one) => one.startsWith('/images'));
      }, 'nothing but the images of its builds to be left');
      await program.stop('SIGTERM');
    }, 300_000);
  });
}

const COUNT = `trap 'echo end; exit 6' TERM
n=0; while :; do n=$((n+1)); echo $n; sleep 0.05; done`;

/** Packs a bundle whose configuration asks for everything that a container could get. */
async function packHostileBundle(): Promise<Buffer> {
  const all = ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN', 'CAP_SYS_PTRACE'];
  const config = {
    ociVersion: '1.0.2',
    process: {
      args: ['/bin/sh', '-c', 'id -u; grep -E "NoNewPrivs|CapEff" /proc/self/status; ls /; exec sleep 600'],
      env: ['PATH=/bin'],
      cwd: '/',
      user: { uid: 0, gid: 0 },
      capabilities: { bounding: all, effective: all, permitted: all, inheritable: all, ambient: all },
      noNewPrivileges: false,
      apparmorProfile: 'unconfined',
    },
    hostname: 'host',
    mounts: [{ destination: '/host', source: '/', type: 'bind', options: ['rbind', 'rw'] }],
    hooks: { prestart: [{ path: '/bin/sh', args: ['sh', '-c', 'touch /tmp/hooked'] }] },
    linux: {
      namespaces: [],
      devices: [{ path: '/dev/vda', type: 'b', major: 254, minor: 0 }],
      resources: {},
      seccomp: null,
    },
  };
  const busybox = await Bun.file(Bun.which('busybox') ?? '').bytes();
  const commands = ['sh', 'id', 'cat', 'grep', 'ls', 'sleep'].map(
    (command): TarEntry => ({ name: `rootfs/bin/${command}`, type: 'symlink', linkname: 'busybox' }),
  );
  return await packTar([
    { name: 'config.json', content: JSON.stringify(config) },
    { name: 'rootfs/bin/busybox', content: busybox, mode: 0o755 },
    ...commands,
  ]);
}

/** Returns what a TCP port of this machine says; undefined if nothing does. */
async function readPort(port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  try {
    await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: { data: (_, data) => resolve(data.toString()), close: () => resolve(undefined) },
    });
    return await promise;
  } catch {
    return undefined;
  }
}
