import { beforeAll, describe, expect, test } from 'bun:test';
import { zstdCompressSync } from 'node:zlib';
import { makeGame, type TestGame, uploadBuild } from '../../support/game.ts';
import { WITHOUT_CONTAINERS } from '../../support/runtimes/containers.ts';
import { ociLayout } from '../../support/runtimes/images.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';
import { packTar, type TarEntry } from '../../support/tar.ts';
import { PACKINGS } from '../../support/unpacking.ts';

const TEST_TIMEOUT_MS = 300_000;
const SCRIPT = 'id -u; id -g; pwd; echo "$MODE $HOME $*"; cat /lib/map; ls /old; exit 5';

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('a container is run', () => {
  const muster = shareService({ MUSTER_CONTAINERS: 'on' });
  let game: TestGame;
  let layers: TarEntry[][];
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    const busybox = await Bun.file(Bun.which('busybox') ?? '').bytes();
    layers = [
      [
        { name: 'bin/busybox', content: busybox, mode: 0o755 },
        ...['sh', 'id', 'cat', 'ls'].map(
          (name): TarEntry => ({ name: `bin/${name}`, type: 'symlink', linkname: '/bin/busybox' }),
        ),
        { name: 'lib', type: 'symlink', linkname: 'usr/lib' },
        { name: 'usr/lib/', type: 'directory' },
        { name: 'old/secret', content: 'hidden by the next layer' },
        { name: 'etc/passwd', content: 'player:x:1234:1235::/home/player:/bin/sh\n' },
        { name: 'srv/', type: 'directory' },
      ],
      [
        { name: 'lib/map', content: 'desert\n', mode: 0o640, uid: 1_234, gid: 1_235 },
        { name: 'old/.wh..wh..opq', content: '' },
        { name: 'run.sh', content: SCRIPT },
      ],
    ];
  }, TEST_TIMEOUT_MS);

  /** Runs a server of a build, and returns how it ended and what it printed. */
  async function run(build: string, runtime: object = {}) {
    const servers = serversOf(muster, game);
    const { body } = await servers.create(await servers.bodyOf(build, { runtime }));
    const end = await waitForEndEvent(muster, body.server.id);
    if (end.event !== 'server_ended') throw new Error('the log has the end of the server');
    const lines = await servers.linesOf(body.server.id);
    return { exit_code: end.exit_code, failure: end.failure, lines };
  }

  test(
    'from an image in the OCI layout, with the user, the files and the links of its layers',
    async () => {
      const config = {
        User: 'player',
        WorkingDir: '/srv',
        Env: ['PATH=/bin', 'MODE=fast'],
        Entrypoint: ['/bin/sh', '/run.sh'],
        Cmd: ['--one'],
      };
      const tar = await packTar(await ociLayout([{ layers, config, compress: (one) => zstdCompressSync(one) }]));
      const build = await uploadBuild(muster.api, game, { image_tag: 'room:1', path: 'image.tar', content: tar });
      expect(await run(build, { arguments: ['--two'] })).toEqual({
        exit_code: 5,
        failure: null,
        lines: ['1234', '1235', '/srv', 'fast /home/player --one --two', 'desert'],
      });
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'from a bundle in lz4, as a client of Rivet names it',
    async () => {
      const process = {
        args: ['/bin/sh', '/run.sh', '--one'],
        env: ['PATH=/bin', 'MODE=slow', 'HOME=/tmp'],
        cwd: '/usr',
        user: { uid: 1_234, gid: 1_235 },
      };
      const rootfs = layers.flat().flatMap((entry) => {
        if (entry.name.startsWith('old/')) return [];
        return [{ ...entry, name: `./rootfs/${entry.name}` }];
      });
      const config: TarEntry = { name: './config.json', content: JSON.stringify({ ociVersion: '1.0.2', process }) };
      const tar = await packTar([config, ...rootfs, { name: 'rootfs/old/', type: 'directory' }]);
      const content = PACKINGS['tar.lz4']?.(tar) ?? tar;
      const build = await uploadBuild(muster.api, game, { path: 'oci-bundle.tar.lz4', content });
      expect(await run(build)).toEqual({
        exit_code: 5,
        failure: null,
        lines: ['1234', '1235', '/usr', 'slow /tmp --one', 'desert'],
      });
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'with the command of the build in the place of its own',
    async () => {
      const content = await packTar(await ociLayout([{ layers, config: { Entrypoint: ['/bin/no-such-program'] } }]));
      const command = ['/bin/sh', '-c', 'echo "$0 $*"', 'game'];
      const build = await uploadBuild(muster.api, game, { kind: 'docker_image', path: 'a.tar', content, command });
      expect(await run(build, { arguments: ['more'] })).toEqual({ exit_code: 0, failure: null, lines: ['game more'] });
    },
    TEST_TIMEOUT_MS,
  );
});
