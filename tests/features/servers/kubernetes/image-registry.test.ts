import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readlinkSync } from 'node:fs';
import { chmod, link, mkdir, readlink, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BuildReads } from '../../../../src/features/servers/runtimes/kubernetes/build-reads.ts';
import { ImageRegistry } from '../../../../src/features/servers/runtimes/kubernetes/image-registry.ts';
import { type PackedImage, PackedImages } from '../../../../src/features/servers/runtimes/kubernetes/packed-images.ts';
import { openPodPort, type PodPort } from '../../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import { sha256 } from '../../../support/objects/digest.ts';
import { IS_ROOT } from '../../../support/runtimes/runtimes.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

const ROOT = resolve(import.meta.dir, '../../../..');
const RUNTIME = join(ROOT, 'src/features/servers/runtimes/kubernetes');
/** A small program that replaces Muster's executable. */
const PROGRAM = Bun.which('cat') ?? '';
const LARGE = 'x'.repeat(3_000_000);

/** Makes a build with files, folders and links of an image. */
async function makeBuild(): Promise<string> {
  const directory = await makeDataDirectory();
  const root = join(directory, 'rootfs');
  for (const folder of ['game', 'root', '.muster']) await mkdir(join(root, folder), { recursive: true });
  await Bun.write(join(root, 'game/run.sh'), 'exit 0');
  await Bun.write(join(root, 'game/large'), LARGE);
  await Bun.write(join(root, 'root/secret'), 'of its user');
  await Bun.write(join(root, '.muster/muster'), 'another program');
  await Bun.write(join(root, '.wh..muster'), '');
  await Bun.write(join(root, 'game/.wh.run.sh'), '');
  await chmod(join(root, 'game/run.sh'), 0o755);
  await chmod(join(root, 'root/secret'), 0o400);
  await chmod(join(root, 'root'), 0o500);
  await link(join(root, 'game/run.sh'), join(root, 'game/same.sh'));
  await symlink('/game/run.sh', join(root, 'run'));
  return directory;
}

describe('kubernetes: the registry for nodes', () => {
  const opened = new AsyncDisposableStack();
  const build_id = crypto.randomUUID();
  const openImage = async (id: string) => (id === build_id ? image : undefined);
  const registry = new ImageRegistry({ key: 'a key', openImage });
  let port: PodPort;
  let url: string;
  let directory: string;
  let image: PackedImage;
  beforeAll(async () => {
    directory = await makeBuild();
    const packed = new PackedImages({ executable: PROGRAM, directory: join(await makeDataDirectory(), 'program') });
    image = await packed.pack({ directory, game_id: 'one' });
    const openBuild = async () => undefined;
    port = opened.use(openPodPort({ pods_host: '127.0.0.1', port: 0, key: 'a key', registry, openBuild }));
    url = new URL(port.addressOf('').build).origin;
  });
  afterAll(() => opened.disposeAsync());

  const ask = (path: string, options: RequestInit = {}) => fetch(`${url}/v2/${path}`, options);
  const nameOf = () => registry.nameOf(build_id);
  const manifestPath = () => `${nameOf()}/manifests/${image.manifest.digest}`;
  const layer = () => image.blobs.at(-1) ?? image.manifest;

  test('refuses whatever does not name an image by its token and digest, always with the same answer', async () => {
    const [, token = ''] = nameOf().split('/');
    const other = new ImageRegistry({ key: 'another key', openImage }).nameOf(build_id);
    const other_name = registry.nameOf(crypto.randomUUID());
    const { digest } = image.manifest;
    const wrong_digest = `sha256:${sha256('')}`;
    const refused = [
      '_catalog',
      `${nameOf()}/tags/list`,
      `${nameOf()}/manifests/latest`,
      `${nameOf()}/manifests/${wrong_digest}`,
      `${nameOf()}/manifests/${layer().digest}`,
      `${nameOf()}/blobs/${wrong_digest}`,
      `${nameOf()}/blobs/${digest}`,
      `${nameOf()}/blobs/`,
      `${other}/manifests/${digest}`,
      `${other_name}/manifests/${digest}`,
      `${build_id}/${other_name.split('/')[1]}/manifests/${digest}`,
      `${build_id}/${'0'.repeat(token.length)}/manifests/${digest}`,
      `${build_id}/${token.slice(1)}/manifests/${digest}`,
      `${build_id}/manifests/${digest}`,
      `${crypto.randomUUID()}/${token}/manifests/${digest}`,
      `${nameOf()}/blobs/..%2f..%2f..%2fetc%2fpasswd`,
      `${nameOf()}/blobs/../../../pods/one/build`,
      `x/../${nameOf()}/blobs/%2e%2e/${layer().digest}`,
      `${nameOf().toUpperCase()}/manifests/${digest}`,
    ];
    const answers = await Promise.all(
      refused.map(async (path) => {
        const answer = await ask(path);
        return [path, answer.status, await answer.text()];
      }),
    );
    const text = JSON.stringify({ errors: [{ code: 'NAME_UNKNOWN', message: 'there is no such image' }] });
    expect(answers).toEqual(refused.map((path) => [path, 404, text]));
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await ask(manifestPath(), { method });
      expect([method, answer.status, await answer.text()]).toEqual([method, 404, text]);
    }
  });

  test('says that it is a registry, and serves a manifest whose parts it has, each with its digest and length', async () => {
    expect((await ask('')).headers.get('docker-distribution-api-version')).toBe('registry/2.0');
    const answer = await ask(manifestPath());
    const text = await answer.text();
    expect(answer.headers.get('content-type')).toBe('application/vnd.oci.image.manifest.v1+json');
    expect(answer.headers.get('docker-content-digest')).toBe(`sha256:${sha256(text)}`);
    const { config, layers } = JSON.parse(text);
    for (const { mediaType, digest, size } of [config, ...layers]) {
      const blob = await ask(`${nameOf()}/blobs/${digest}`);
      const bytes = await blob.bytes();
      expect([blob.headers.get('content-type'), bytes.length, sha256(bytes)]).toEqual([
        mediaType,
        size,
        digest.slice(7),
      ]);
    }
    const { rootfs, config: own } = await (await ask(`${nameOf()}/blobs/${config.digest}`)).json();
    expect(own).toEqual({});
    expect(rootfs.diff_ids).toEqual(layers.map(({ digest }: { digest: string }) => digest));
  });

  test('answers HEAD with the same headers, and nothing else', async () => {
    for (const path of [manifestPath(), `${nameOf()}/blobs/${layer().digest}`]) {
      const [head, get] = [await ask(path, { method: 'HEAD' }), await ask(path)];
      const bytes = await get.bytes();
      expect((await head.bytes()).length).toBe(0);
      expect(head.headers.get('content-length')).toBe(String(bytes.length));
      for (const name of ['content-type', 'docker-content-digest']) {
        expect(head.headers.get(name)).toBe(get.headers.get(name));
      }
    }
  });

  test('continues a layer where a node lost its connection', async () => {
    const path = `${nameOf()}/blobs/${layer().digest}`;
    const whole = await (await ask(path)).bytes();
    for (const from of [0, 1, 512, 70_000, whole.length - 1]) {
      const answer = await ask(path, { headers: { range: `bytes=${from}-` } });
      const range = `bytes ${from}-${whole.length - 1}/${whole.length}`;
      expect([answer.status, answer.headers.get('content-range')]).toEqual([206, range]);
      expect(sha256(await answer.bytes())).toBe(sha256(whole.subarray(from)));
    }
    const after = await ask(path, { headers: { range: `bytes=${whole.length}-` } });
    expect([after.status, after.headers.get('content-range')]).toEqual([416, `bytes */${whole.length}`]);
    // Other ranges may be answered with the whole.
    for (const range of ['bytes=5-9', 'bytes=-5', 'bytes=0-1,5-', 'lines=1-', 'bytes=x-']) {
      const answer = await ask(path, { headers: { range } });
      expect([answer.status, (await answer.bytes()).length]).toEqual([200, whole.length]);
    }
  });

  test('keeps no file open for a node that has disconnected', async () => {
    const large = join(directory, 'rootfs/game/large');
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((name) => {
        try {
          return readlinkSync(`/proc/self/fd/${name}`) === large;
        } catch {
          // Closed since the folder was read.
          return false;
        }
      });
    for (let time = 0; time < 10; time += 1) {
      const leaving = new AbortController();
      const answer = await ask(`${nameOf()}/blobs/${layer().digest}`, { signal: leaving.signal });
      await answer.body?.getReader().read();
      leaving.abort();
    }
    await waitFor(() => !isOpen(), 'the file to be closed');
  });

  test('says that an image cannot be read, and reports why', async () => {
    const causes: unknown[] = [];
    const broken = new ImageRegistry({
      key: 'a key',
      openImage: () => Promise.reject(new Error('its files are gone')),
      onFailed: (cause) => void causes.push(cause),
    });
    const request = new Request(`${url}/v2/${manifestPath()}`);
    const answer = await broken.answer(request, { timeout() {} });
    expect([answer?.status, await answer?.text()]).toEqual([503, expect.not.stringContaining('gone')]);
    expect(causes.map(String)).toEqual(['Error: its files are gone']);
  });

  /** Sends a registry the same request `times` at once, without a port. */
  const answersOf = async (from: ImageRegistry, path: string, times = 1) => {
    const request = () => from.answer(new Request(`${url}/v2/${path}`), { timeout() {} });
    return (await Promise.all(Array.from({ length: times }, request))).filter((answer) => answer !== undefined);
  };

  test('serves at most its maximum of layers at a time, also to concurrent requests', async () => {
    const small = new ImageRegistry({ key: 'a key', openImage, reads: new BuildReads(2) });
    const path = `${nameOf()}/blobs/${layer().digest}`;
    const answers = await answersOf(small, path, 4);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    for (const answer of answers) await answer.body?.cancel();
    expect((await answersOf(small, path)).map(({ status }) => status)).toEqual([200]);
  });

  test('asks a node to try again until its image is ready, and then serves it', async () => {
    const { promise, resolve } = Promise.withResolvers<PackedImage>();
    const slow = new ImageRegistry({ key: 'a key', openImage: () => promise, open_within_ms: 20 });
    const [early] = await answersOf(slow, manifestPath());
    expect([early?.status, early?.headers.get('retry-after')]).toEqual([503, '1']);
    resolve(image);
    expect((await answersOf(slow, manifestPath())).map(({ status }) => status)).toEqual([200]);
  });

  test('packs the files of a build for the user of the pods, with their links, and without what Muster adds', async () => {
    const list =
      await Bun.$`tar -tvf - --numeric-owner < ${await (await ask(`${nameOf()}/blobs/${layer().digest}`)).bytes()}`.text();
    expect(
      list
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/\s+\d+ \d{4}-\d\d-\d\d \d\d:\d\d/, '')),
    ).toEqual([
      'drwxr-xr-x 10001/10001 game/',
      '-rw-r--r-- 10001/10001 game/large',
      '-rwxr-xr-x 10001/10001 game/run.sh',
      'hrwxr-xr-x 10001/10001 game/same.sh link to game/run.sh',
      'drwx------ 10001/10001 root/',
      '-rw------- 10001/10001 root/secret',
      'lrwxrwxrwx 10001/10001 run -> /game/run.sh',
    ]);
  });

  test('packs the same files to the same image, also in another place', async () => {
    const packed = new PackedImages({ executable: PROGRAM, directory: join(await makeDataDirectory(), 'program') });
    const copy = await makeDataDirectory();
    await Bun.$`cp --archive ${directory}/rootfs ${copy}`;
    expect((await packed.pack({ directory: copy, game_id: 'one' })).manifest.digest).toBe(image.manifest.digest);
    await expect(packed.pack({ directory: join(copy, 'nowhere'), game_id: 'one' })).rejects.toThrow('ENOENT');
  });

  test('packs the same image from a volume whose files a node gave to a group (fsGroup)', async () => {
    const packed = new PackedImages({ executable: PROGRAM, directory: join(await makeDataDirectory(), 'program') });
    const volume = await makeDataDirectory();
    await Bun.$`cp --archive ${directory}/rootfs ${volume}`;
    await Bun.$`find ${volume}/rootfs -type d -exec chmod u+rwx,g+rwxs {} +`;
    await Bun.$`find ${volume}/rootfs -type f -exec chmod u+rw,g+rw {} +`;
    expect((await packed.pack({ directory: volume, game_id: 'one' })).manifest.digest).toBe(image.manifest.digest);
  });

  test.skipIf(!IS_ROOT)('adds a program that runs where there is nothing else', async () => {
    const root = await makeDataDirectory();
    const [, program] = image.blobs;
    await Bun.$`tar -xf - -C ${root} < ${await (await ask(`${nameOf()}/blobs/${program?.digest}`)).bytes()}`;
    await Bun.write(join(root, 'note'), 'hello');
    const env = { LD_LIBRARY_PATH: '/.muster' };
    const chroot = Bun.which('chroot', { PATH: '/usr/sbin:/sbin:/usr/bin' }) ?? 'chroot';
    const child = Bun.spawn([chroot, root, '/.muster/muster', '/note'], { env, stdout: 'pipe', stderr: 'pipe' });
    expect([await new Response(child.stderr).text(), await new Response(child.stdout).text()]).toEqual(['', 'hello']);
    expect(await readlink(join(directory, 'rootfs/run'))).toBe('/game/run.sh');
  });

  test('copies the executable of its own process, which hides from all others, with its libraries', async () => {
    const copy = await makeDataDirectory();
    const script = `import { hideFromOthers } from ${JSON.stringify(join(ROOT, 'src/platform/system/memory-hiding.ts'))};
      import { copyExecutable } from ${JSON.stringify(join(RUNTIME, 'executable-copy.ts'))};
      hideFromOthers();
      await copyExecutable({ executable: \`/proc/\${process.pid}/exe\`, directory: ${JSON.stringify(copy)} });`;
    // Root sees all processes unless it lacks this capability, as it does in containers.
    const limited = IS_ROOT ? ['setpriv', '--bounding-set', '-sys_ptrace'] : [];
    await Bun.$`${limited} ${process.execPath} -e ${script}`.quiet();
    const version = await Bun.$`${copy}/ld.so --library-path ${copy} ${copy}/muster --version`.text();
    expect(version.trim()).toBe(Bun.version);
  });
});
