import { beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measureDisk } from '../../../src/features/servers/runtimes/disk-use.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { IS_LONG } from '../../support/length.ts';
import { endOf, serversOf } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';

const KIB = 1_024;
const MIB = KIB ** 2;
type Case = [what: string, script: string, failure: string];
const NO_LIMIT = { bytes: Number.MAX_SAFE_INTEGER, files: Number.MAX_SAFE_INTEGER };

describe('what a server has on the disk', () => {
  const measure = (folder: string, limit = NO_LIMIT) =>
    measureDisk({ folder, pids: [process.pid], isInside: (path) => path.startsWith(`${folder}/`) }, limit);

  async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'muster-disk-'));
    await work(folder);
    await rm(folder, { recursive: true });
  }

  test('is what is allocated for files at any depth, without what links lead to', async () => {
    await inFolder(async (folder) => {
      await mkdir(join(folder, 'a/b'), { recursive: true });
      await writeFile(join(folder, 'a/b/file'), new Uint8Array(MIB));
      await writeFile(join(folder, 'sparse'), '');
      await truncate(join(folder, 'sparse'), 1_024 * MIB);
      await symlink('/usr', join(folder, 'link'));
      const { bytes, files } = await measure(folder);
      expect(files).toBe(5);
      expect(bytes).toBeGreaterThanOrEqual(MIB);
      expect(bytes).toBeLessThan(MIB + 64 * KIB);
    });
  });

  test('includes a deleted file that is still open, once', async () => {
    await inFolder(async (folder) => {
      const path = join(folder, 'hidden');
      await writeFile(path, new Uint8Array(MIB));
      const held = [Bun.file(path).stream().getReader(), Bun.file(path).stream().getReader()];
      await Promise.all(held.map((reader) => reader.read()));
      await rm(path);
      const { bytes, files } = await measure(folder);
      expect([bytes, files]).toEqual([MIB, 1]);
      await Promise.all(held.map((reader) => reader.cancel()));
    });
  });

  test('is counted only until it is above the limit', async () => {
    await inFolder(async (folder) => {
      for (let file = 0; file < 50; file += 1) await writeFile(join(folder, String(file)), '');
      expect((await measure(folder, { ...NO_LIMIT, files: 10 })).files).toBe(11);
    });
  });

  test('of a folder that does not exist is nothing', async () => {
    expect(await measure('/nowhere/at/all')).toEqual({ bytes: 0, files: 0 });
  });
});

describe('a server above its disk limit', () => {
  const muster = shareService({ MUSTER_SERVER_DISK_MB: '8' });
  let game: TestGame;
  let servers: ReturnType<typeof serversOf>;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    servers = serversOf(muster, game);
  });

  const FILL = 'cd "$HOME"; head -c 20000000 /dev/zero';
  /** Takes half a minute. */
  const TOO_MANY_FILES: Case = [
    'makes too many files',
    'cd "$HOME"; seq 1 100001 | xargs touch; echo done; exec sleep 600',
    'it exceeded its 100000 files',
  ];
  test.each<Case>([
    ['writes too much', `${FILL} > file; echo done; exec sleep 600`, 'it exceeded its 8 MB of disk'],
    [
      'deletes what it has open',
      `cd "$HOME"; exec 4> file; rm file; ${FILL} >&4; echo done; exec sleep 600`,
      'it exceeded its 8 MB of disk',
    ],
    ...(IS_LONG ? [TOO_MANY_FILES] : []),
  ])('that %s is ended with the reason, and nothing of it is left', async (_, script, failure) => {
    const server_id = await servers.run(script);
    expect(await endOf(muster, server_id)).toMatchObject({ failure });
    expect(await servers.linesOf(server_id, 'std_err')).toEqual([`[muster] ${failure}`]);
    expect(existsSync(join(muster.config.data_directory, 'servers', server_id))).toBe(false);
  });

  test('has no effect on one below it', async () => {
    const server_id = await servers.run('head -c 4000000 /dev/zero > "$HOME/file"; echo done; exec sleep 600');
    const other = await servers.run(`${FILL} > file; exec sleep 600`);
    await endOf(muster, other);
    expect((await servers.get(server_id)).destroyed_at).toBeUndefined();
    await servers.destroy(server_id, '?override_kill_timeout=0');
  });
});
