import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identifyProcess } from '../../src/platform/system/processes.ts';
import { readToEnd } from '../support/processes.ts';
import { COMMAND } from '../support/program.ts';
import { WITHOUT_CONTAINERS } from '../support/runtimes/containers.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const busybox = Bun.which('busybox');
const BUILDERS = ['podman', 'buildah'].filter((name) => Bun.which(name) !== null);
const missing = WITHOUT_CONTAINERS ?? (BUILDERS.length === 0 ? 'install podman' : undefined);

/** A game server that calls ready and runs until it is ended, which a deploy does as soon as it is ready. */
const SERVER = `#!/bin/sh
echo "has $(cd /assets && echo * .[a-z]* */*)"
address=\${SERVICE_API_ENDPOINT#http://}
printf 'POST /matchmaker/lobbies/ready HTTP/1.0\\r\\nhost: %s\\r\\nauthorization: Bearer %s\\r\\ncontent-length: 2\\r\\ncontent-type: application/json\\r\\n\\r\\n{}' \\
  "$address" "$SERVICE_TOKEN" | busybox nc "\${address%:*}" "\${address#*:}"
while :; do echo hello | busybox nc -l -p 80; done
`;
const DOCKERFILE = `FROM scratch
ARG SCRIPT
COPY busybox /bin/busybox
COPY busybox /bin/sh
COPY \${SCRIPT} /server.sh
COPY assets /assets
ENV PATH=/bin
CMD ["/bin/sh", "/server.sh"]
`;
const PROJECT = `game: boxed
build: {dockerfile: server/Dockerfile, args: {SCRIPT: run.sh}}
matchmaker:
  tier: basic-1d8
  docker: {ports: {page: {port: 80, protocol: tcp}}}
`;

/** Builds an image at once, begins to write it to a file, and never ends. */
const SLOW_BUILDER = `#!/bin/sh
case "$1" in
build) while [ "$1" != --iidfile ]; do shift; done; echo sha256:0 >"$2" ;;
save) echo image >"$3"; echo $$ >"$HOME/saving"; exec sleep 1000 ;;
esac
`;

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-cli-image-'));
  await Bun.write(join(home, 'muster.yaml'), PROJECT);
  await Bun.write(join(home, 'server/Dockerfile'), DOCKERFILE);
  await Bun.write(join(home, 'run.sh'), SERVER);
  const assets = [
    'page.html',
    '.env',
    'draft.txt',
    'own[1].pem',
    'own-data/administrator-token',
    'keys/a.key',
    'keys/b.key',
  ];
  for (const path of assets) await Bun.write(join(home, 'assets', path), 'content');
  await Bun.write(join(home, '.musterignore'), '!b.key\n');
  await Bun.write(join(home, '.dockerignore'), '*/draft.txt\n');
});
afterAll(async () => {
  await rm(home, { recursive: true, force: true });
  if (missing !== undefined) console.log(`Not tried, because ${missing}: a deploy that builds a Dockerfile.`);
});

/** Runs a command in the folder. */
async function run(args: string[], env: Record<string, string>) {
  const child = Bun.spawn([...COMMAND, ...args], {
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: home, XDG_CONFIG_HOME: join(home, 'config'), ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  return await readToEnd(child);
}

describe('deploy: a Dockerfile', () => {
  const muster = shareService();

  test('is refused on a machine without a program that builds it, with what to do; a dry run builds nothing', async () => {
    const env = { PATH: home, MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: muster.administrator_token };
    const refused = await run(['deploy'], env);
    expect([refused.exit_code, refused.stderr]).toEqual([
      1,
      expect.stringContaining(
        'Dockerfile needs docker, podman or buildah on this machine, and none works here. Install',
      ),
    ]);
    const dry = await run(['deploy', '--dry-run'], env);
    expect([dry.exit_code, dry.stderr]).toEqual([0, expect.stringContaining('Dockerfile would be built')]);
  }, 300_000);

  test('names the secrets that an old Docker may put into its image', async () => {
    const tools = join(home, 'old-tools');
    // It builds nothing, and has no buildx.
    await Bun.write(join(tools, 'docker'), '#!/bin/sh\n[ "$1" = version ]\n');
    await chmod(join(tools, 'docker'), 0o755);
    const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: muster.administrator_token };
    const { stderr } = await run(['deploy'], { ...env, PATH: `${tools}:${process.env.PATH}` });
    expect(stderr).toContain('secrets  docker without buildx may put these into the image: ');
    expect(stderr).toMatch(/into the image: .*assets\/own-data/);
  }, 300_000);

  test('is built for the platform of build.platform', async () => {
    const [tools, folder] = [join(home, 'recording-tools'), join(home, 'other-platform')];
    await Bun.write(
      join(tools, 'docker'),
      '#!/bin/sh\n[ "$1" = build ] && echo "$@" >>"$HOME/built" && exit 1\nexit 0\n',
    );
    await chmod(join(tools, 'docker'), 0o755);
    await Bun.write(join(folder, 'Dockerfile'), 'FROM scratch\n');
    await Bun.write(
      join(folder, 'muster.yaml'),
      'game: elsewhere\nbuild: {dockerfile: Dockerfile, platform: linux/arm64}\n',
    );
    const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: muster.administrator_token, HOME: folder };
    const child = Bun.spawn([...COMMAND, 'deploy'], {
      cwd: folder,
      env: { ...env, PATH: `${tools}:${process.env.PATH}` },
      stdout: 'ignore',
      stderr: 'ignore',
    });
    expect(await child.exited).toBe(1);
    expect(readFileSync(join(folder, 'built'), 'utf8')).toContain('--platform linux/arm64');
  }, 300_000);

  test('that is stopped while its image is written leaves neither the program that writes it nor the file', async () => {
    const [tools, temporary] = [join(home, 'slow-tools'), join(home, 'temporary')];
    await mkdir(temporary);
    await Bun.write(join(tools, 'docker'), SLOW_BUILDER);
    await chmod(join(tools, 'docker'), 0o755);
    const env = { PATH: `${tools}:${process.env.PATH}`, TMPDIR: temporary };
    const child = Bun.spawn([...COMMAND, 'deploy'], {
      cwd: home,
      env: { HOME: home, MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: muster.administrator_token, ...env },
      stdout: 'ignore',
      stderr: 'ignore',
    });
    const readPid = () => Number(readFileSync(join(home, 'saving'), 'utf8'));
    await waitFor(() => existsSync(join(home, 'saving')) && readPid() > 0, 'the image to be written');
    child.kill('SIGINT');
    expect(await child.exited).toBe(130);
    expect(readdirSync(temporary)).toEqual([]);
    expect(identifyProcess(readPid())).toBeUndefined();
  }, 300_000);
});

describe.skipIf(missing !== undefined)('deploy: a Dockerfile is built, checked and goes live,', () => {
  const muster = shareService({ MUSTER_CONTAINERS: 'on' });

  test.each(BUILDERS)(
    'by %s, and is not sent again unless it changes',
    async (builder) => {
      const tools = join(home, builder);
      const storage = { driver: 'vfs', graphroot: join(tools, 'images'), runroot: join(tools, 'run') };
      const settings = Object.entries(storage).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
      await Bun.write(join(tools, 'storage.conf'), ['[storage]', ...settings, ''].join('\n'));
      // The first program on the path that works builds the image.
      await Bun.write(join(tools, 'docker'), '#!/bin/sh\nexit 1\n');
      await Bun.$`chmod +x ${join(tools, 'docker')}`;
      if (builder === 'buildah') await cp(join(tools, 'docker'), join(tools, 'podman'));
      await cp(busybox ?? '', join(home, 'busybox'));
      const env = {
        MUSTER_URL: muster.config.public_url,
        MUSTER_TOKEN: muster.administrator_token,
        PATH: `${tools}:${process.env.PATH}`,
        CONTAINERS_STORAGE_CONF: join(tools, 'storage.conf'),
      };
      const game = `boxed-${builder}`;
      const first = await run(['deploy', '--game', game], env);
      expect([first.exit_code, first.stderr]).toEqual([0, expect.stringContaining('a lobby of the version was ready')]);
      expect(first.stderr).toContain(`build    Dockerfile, by ${builder}`);
      expect(first.stderr).toMatch(/secrets {2}left out: .*assets\/\.env/);
      // Its output is stored a moment after it was written.
      const logs = await waitFor(async () => {
        const { stdout } = await run(['logs', '--game', game, '--namespace', 'deploy-check'], env);
        return stdout.includes('has ') && stdout;
      }, 'the log of the lobby');
      expect(logs).toContain('has keys page.html .[a-z]* keys/b.key\n');
      const again = await run(['deploy', '--game', game, '--no-check', '--message', 'again'], env);
      expect([again.exit_code, again.stderr]).toEqual([0, expect.stringContaining('not sent again')]);
      await Bun.write(join(home, 'run.sh'), `${SERVER}# ${builder}\n`);
      const changed = await run(['deploy', '--game', game, '--no-check', '--message', 'changed'], env);
      expect([changed.exit_code, changed.stderr]).toEqual([0, expect.stringMatching(/image\.tar\.zst, [\d.]+ MB/)]);
    },
    300_000,
  );
});
