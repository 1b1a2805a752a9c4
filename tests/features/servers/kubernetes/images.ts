import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Observation } from '../../../../src/features/servers/runtimes/runtime.ts';
import { AUTHORITY, CERTIFICATE, CERTIFICATE_KEY } from '../../../support/certificates.ts';
import { makeGame, uploadBuild } from '../../../support/game.ts';
import { clusterSettings, inspectPod, kubernetesImages, letNodesPull } from '../../../support/kubernetes/kubernetes.ts';
import type { Lab } from '../../../support/kubernetes/kubernetes-lab.ts';
import { findFreePort } from '../../../support/network/test-ports.ts';
import { makeHome } from '../../../support/program.ts';
import { makeImage, makeScriptImage, packImage } from '../../../support/runtimes/containers.ts';
import { openTestRuntime, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { serversOf } from '../../../support/servers.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

const SLOW_MS = 240_000;
const NO_PULL = 'its image cannot be pulled to its node';
/** A name in the certificate of the tests. */
const PUBLIC_NAME = 'verify.example';

/** Describes servers that run from images. Nodes pull these from Muster. */
export function describeImages(lab: () => Lab): void {
  describe('a server of an image', () => {
    const kind = kubernetesImages(lab);
    let opened: TestRuntime;
    beforeAll(async () => {
      opened = await openTestRuntime(kind);
    });
    afterAll(async () => {
      await opened[Symbol.asyncDispose]();
      await kind[Symbol.asyncDispose]();
    });

    const ENDS: [script: string, command: string[], end: object, errors: string][] = [
      ['echo oops >&2; exit 3', [], { exit_code: 3, exit_signal: null }, 'oops\n'],
      ['kill -SEGV $$', [], { exit_code: null, exit_signal: 'SIGSEGV' }, ''],
      ['', ['./server'], { exit_code: 127, exit_signal: null }, './server: not found\n'],
      ['', ['./run.sh'], { exit_code: 126, exit_signal: null }, './run.sh: Permission denied\n'],
    ];
    test('ends with its own exit code, and its log says what could not be started, also without a shell', async () => {
      const ended = await Promise.all(
        ENDS.map(async ([script, command]) => {
          const build = { ...(await makeImage(opened.directory, script)), command };
          const server = await opened.run('', { build });
          const end = await opened.waitForEnd(server);
          const errors = await opened.output(server, 'std_err');
          await opened.remove(server);
          return [end, errors];
        }),
      );
      expect<unknown>(ended).toEqual(ENDS.map(([, , end, errors]) => [{ is: 'ended', ...end }, errors]));
    });

    test('goes on through a restart of the service, which misses neither output nor end, and can be killed', async () => {
      const script = `trap 'echo asked >&2' TERM; i=0; while :; do i=$((i + 1)); echo $i; sleep 0.1; done`;
      await using own_kind = kubernetesImages(lab);
      await using own = await openTestRuntime(own_kind);
      const server = await own.run(script);
      await waitFor(async () => (await own.output(server)) !== '', 'its first line');
      await own_kind.restartPort();
      const runtime = await own.reopen();
      const read = async (stream: 'std_out' | 'std_err') => {
        const { bytes } = await runtime.readOutput(server, stream, {
          from: undefined,
          bytes_max: 100_000,
          backlog_bytes_max: 100_000,
        });
        return Buffer.from(bytes).toString();
      };
      await own.stop(server, runtime);
      await waitFor(async () => (await read('std_err')) === 'asked\n', 'it to be asked');
      await own.kill(server, runtime);
      expect(await own.observe(server, runtime)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
      const numbers = (await read('std_out')).trimEnd().split('\n').map(Number);
      expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1));
      await own.remove(server, runtime);
    });

    test('starts as its image says, with the arguments and variables of the server, and nothing of Muster', async () => {
      const script = 'pwd; echo "$@"; env; id -u; ls /; echo x >/game/x; echo y >/tmp/y; cat /tmp/y; cat private';
      const build = await makeImage(opened.directory, script, {
        env: ['PATH=/bin', 'HOME=/game', 'A=image', 'B=image'],
      });
      await Bun.write(join(build.directory, 'rootfs/game/private'), 'its own file');
      await Bun.$`chmod 0600 ${join(build.directory, 'rootfs/game/private')}`;
      const text = await opened.runOnce('', {
        build,
        arguments: ['one', 'two'],
        environment: { B: 'server', PORT_game: '7777' },
      });
      const [directory, words, ...lines] = text.split('\n');
      expect([directory, words]).toEqual(['/game', 'one two']);
      expect(lines).toEqual(
        expect.arrayContaining(['A=image', 'B=server', 'HOME=/game', 'PORT_game=7777', '10001', 'y']),
      );
      expect(text).toContain('its own file');
      expect(text).toMatch(/\/game\/x: Read-only file system/);
      expect(text).not.toMatch(/LD_LIBRARY_PATH|MUSTER_POD|KUBERNETES/);
    });

    test('with the C library of Debian runs, and gets SIGTERM', async () => {
      const script = `process.on('SIGTERM', () => { console.error('asked'); process.exit(6); });
        console.log('ready', process.cwd()); setInterval(() => {}, 1000);`;
      const build = await makeScriptImage(opened.directory, script);
      const server = await opened.run('', { build });
      await waitFor(async () => (await opened.output(server)) === 'ready /game\n', 'it to be ready');
      await opened.stop(server);
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 6, exit_signal: null });
      expect(await opened.output(server, 'std_err')).toBe('asked\n');
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

    test('listens at the port that its program has, which players reach at another one of the node', async () => {
      const public_port = 26_000 + Math.floor(Math.random() * 1_000);
      const ports = { game: { protocol: 'tcp', routing: 'host', internal_port: 7_777, public_port } } as const;
      const server = await opened.run('while :; do echo hello | nc -l -p 7777; done', { ports });
      const seen = (await opened.observe(server)) as Extract<Observation, { is: 'running' }>;
      const read = async () => {
        const { promise, resolve } = Promise.withResolvers<string>();
        const end = () => resolve('');
        const data = (_: unknown, bytes: Buffer) => resolve(bytes.toString());
        await Bun.connect({ hostname: seen.host, port: public_port, socket: { data, close: end, error: end } });
        return await promise;
      };
      await waitFor(async () => (await read().catch(() => '')) === 'hello\n', 'its port to answer');
      await opened.remove(server);
    });

    test('whose registry does not answer says so, and does not show the name of its image', async () => {
      await using other_kind = kubernetesImages(lab, { registry_host: `${lab().host}:1` });
      await using other = await openTestRuntime(other_kind);
      const order = await other.orderOf('exec sleep 600');
      await other.runtime.start(order);
      const waiting = { server_id: order.server_id, identity: undefined };
      const reason = await waitFor(async () => {
        const seen = await other.observe(waiting);
        return seen.is === 'pending' && seen.reason.startsWith('its image') && seen.reason;
      }, 'the reason');
      expect(reason).toContain('cannot be pulled to its node: tell the operator to check MUSTER_KUBERNETES_REGISTRY');
      expect(reason).not.toMatch(/[0-9a-f]{32}/);
      await other.remove(waiting);
      expect(await other.observe(waiting)).toEqual({ is: 'absent' });
    });
  });

  test(
    'an uploaded image runs as a pod, also over a restart of the service, which gives it to nodes at its own port too',
    async () => {
      const settings = clusterSettings(lab());
      const registry = `${lab().host}:${settings.MUSTER_KUBERNETES_PORT}`;
      await letNodesPull(lab(), registry);
      await using home = await makeHome({ ...settings, MUSTER_KUBERNETES_REGISTRY: registry, MUSTER_DEMO: 'off' });
      let muster = await home.start();
      const game = await makeGame(muster.api, muster.administrator_token);
      const script = `trap 'echo bye; exit 3' TERM; echo "hello from $HOME"; echo oops >&2; while :; do echo; sleep 1; done`;
      const image = await packImage(script, 'room:1');
      const build = await uploadBuild(muster.api, game, { image_tag: 'room:1', path: 'image.tar', content: image });
      const servers = () => serversOf(muster, game);
      const { id } = (await servers().create(await servers().bodyOf(build))).body.server;
      expect((await servers().waitForLines(id, 1))[0]).toBe('hello from /tmp');
      await waitFor(async () => (await servers().linesOf(id, 'std_err')).includes('oops'), 'its errors');
      const headers = { host: registry };
      expect((await fetch(`${muster.url}/v2/`, { headers })).status).toBe(200);
      expect((await fetch(`${muster.url}/v2/`)).status).toBe(404);
      expect((await fetch(`${muster.url}/v2/x/manifests/y`, { headers })).status).toBe(404);
      await muster.stop('SIGKILL');
      muster = await home.start();
      // Until its pod has found the new process, it could only be killed.
      const before = (await servers().allLinesOf(id)).length;
      await waitFor(async () => (await servers().allLinesOf(id)).length > before, 'its output to go on');
      await servers().destroy(id);
      await waitFor(async () => (await servers().linesOf(id)).at(-1) === 'bye', 'its last line');
      await waitFor(async () => (await inspectPod(lab(), id)) === undefined, 'its pod to be removed');
    },
    SLOW_MS,
  );

  test(
    'nodes pull an uploaded image by https once they trust the authority of its certificate',
    async () => {
      const directory = await makeDataDirectory();
      const fileOf = async (name: string, content: string) => {
        await Bun.write(join(directory, name), content);
        return join(directory, name);
      };
      const [port, https_port] = [findFreePort(), findFreePort()];
      const registry = `${PUBLIC_NAME}:${https_port}`;
      await lab().run('name', PUBLIC_NAME, lab().host);
      await using home = await makeHome({
        ...clusterSettings(lab()),
        MUSTER_PORT: String(port),
        MUSTER_PUBLIC_URL: `http://127.0.0.1:${port}`,
        MUSTER_HTTPS_PORT: String(https_port),
        MUSTER_TLS_CERTIFICATE: await fileOf('tls.pem', CERTIFICATE),
        MUSTER_TLS_KEY: await fileOf('tls.key', CERTIFICATE_KEY),
        MUSTER_KUBERNETES_REGISTRY: registry,
        MUSTER_DEMO: 'off',
      });
      const muster = await home.start();
      const game = await makeGame(muster.api, muster.administrator_token);
      const content = await packImage('echo hello; exec sleep 600', 'room:1');
      const build = await uploadBuild(muster.api, game, { image_tag: 'room:1', path: 'image.tar', content });
      const { bodyOf, create, waitForLines, linesOf, destroy } = serversOf(muster, game);
      const { id } = (await create(await bodyOf(build))).body.server;
      const isRefused = async () => (await linesOf(id, 'std_err')).some((line) => line.includes(NO_PULL));
      await waitFor(isRefused, 'a node to refuse the certificate, which it does not trust');
      await lab().run('registry', registry, await fileOf('ca.crt', AUTHORITY));
      expect(await waitForLines(id, 1)).toEqual(['hello']);
      await destroy(id);
      await waitFor(async () => (await inspectPod(lab(), id)) === undefined, 'its pod to be removed');
    },
    SLOW_MS,
  );
}
