import { beforeAll, describe, expect, test } from 'bun:test';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLimitingDisk } from '../../../src/features/servers/disk-limit.ts';
import { isAbove, measureDisk } from '../../../src/features/servers/runtimes/disk-use.ts';
import type { DiskUse } from '../../../src/features/servers/runtimes/runtime.ts';
import type { ServerRow } from '../../../src/features/servers/tables.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { removeFolder } from '../../../src/platform/system/folder-removal.ts';
import { readNames } from '../../../src/platform/system/libc.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { nestFolders } from '../../support/nested-folders.ts';
import { IS_ROOT, NO_DISK_LIMIT } from '../../support/runtimes/runtimes.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** Making 100,000 files takes a while on a busy machine. */
const END_WITHIN_MS = 150_000;
const KIB = 1_024;
const MIB = KIB ** 2;
type Case = [what: string, script: string, failure: string];
const MODULE = '../../../src/features/servers/runtimes/disk-use.ts';
/** A user without rights. */
const STRANGER = 65_534;

/** Returns a process that has mapped a file of a folder many times, and deleted it. */
async function mapDeleted(folder: string, count: number) {
  const path = join(folder, 'hidden');
  await writeFile(path, new Uint8Array(4 * KIB));
  const script = `
    globalThis.mapped = Array.from({ length: ${count} }, () => Bun.mmap(${JSON.stringify(path)}));
    require('node:fs').rmSync(${JSON.stringify(path)});
    console.log('mapped');
    setInterval(() => {}, 60_000);`;
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' });
  const reader = child.stdout.getReader();
  await reader.read();
  await reader.cancel();
  return child;
}

/** Lists the open files of this process, by their paths. */
const listOpenFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((file) => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`);
    } catch {
      // It was closed meanwhile.
      return [];
    }
  });

describe('what a server has on the disk', () => {
  const measure = (folder: string, limit = NO_DISK_LIMIT, pid = process.pid) =>
    measureDisk({ folder, pids: [pid], isInside: (path) => path.startsWith(`${folder}/`) }, limit);

  async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'muster-disk-'));
    await work(folder);
    await removeFolder(folder);
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

  test.skipIf(!IS_ROOT)('includes a deleted file that is mapped and no longer open', async () => {
    await inFolder(async (folder) => {
      const path = join(folder, 'hidden');
      await writeFile(path, new Uint8Array(MIB));
      const mapped = Bun.mmap(path);
      await rm(path);
      expect(await measure(folder)).toEqual({ bytes: MIB, files: 1 });
      expect(mapped.length).toBe(MIB);
    });
  });

  test('includes files whose names are not UTF-8', async () => {
    await inFolder(async (folder) => {
      const below = (...names: Buffer[]) => Buffer.concat([Buffer.from(folder), ...names]);
      const [hidden, file] = [Buffer.from('/\xff', 'latin1'), Buffer.from('/\xfe', 'latin1')];
      mkdirSync(below(hidden));
      writeFileSync(below(hidden, file), new Uint8Array(MIB));
      writeFileSync(below(file), new Uint8Array(MIB));
      const { bytes, files } = await measure(folder);
      expect(files).toBe(3);
      expect(bytes).toBeGreaterThanOrEqual(2 * MIB);
    });
  });

  test('includes files whose paths are too long for a program to name', async () => {
    await inFolder(async (folder) => {
      nestFolders(folder, { name: 'n'.repeat(250), count: 20 }, new Uint8Array(MIB));
      const { bytes, files } = await measure(folder);
      expect(files).toBe(21);
      expect(bytes).toBeGreaterThanOrEqual(MIB);
    });
  });

  test('is above every limit if folders are nested too deeply to be counted', async () => {
    await inFolder(async (folder) => {
      nestFolders(folder, { name: 'n', count: 300 }, new Uint8Array(MIB));
      const used = await measure(folder);
      expect(used.is_uncountable).toBe(true);
      expect(isAbove(used, NO_DISK_LIMIT)).toBe(true);
    });
  });

  test.skipIf(!IS_ROOT)('includes folders that their owner may not read, if the service is not root', async () => {
    await inFolder(async (folder) => {
      for (const mode of [0o000, 0o400, 0o100]) {
        const closed = join(folder, String(mode));
        await mkdir(closed);
        await writeFile(join(closed, 'file'), new Uint8Array(MIB));
        await chown(closed, STRANGER, STRANGER);
        await chmod(closed, mode);
      }
      await chown(folder, STRANGER, STRANGER);
      const { bytes, files } = await measureAsOtherUser(folder);
      expect(files).toBe(6);
      expect(bytes).toBeGreaterThanOrEqual(3 * MIB);
      expect((await stat(join(folder, '0'))).mode & 0o777).toBe(0o500);
    });
  });

  test('is above every limit if its processes have too many open files to be counted', async () => {
    await inFolder(async (folder) => {
      // A process with 8,000 open files becomes nine.
      const open = 'my @files; for (1..8000) { open(my $file, "<", "/dev/null") or die; push @files, $file }';
      const fork = 'my @pids = ($$); for (1..8) { my $pid = fork; sleep 60, exit if !$pid; push @pids, $pid }';
      const end = 'close STDIN; kill "KILL", @pids';
      const script = `${open} ${fork} $| = 1; print "@pids\\n"; <STDIN>; ${end}`;
      const child = Bun.spawn(['perl', '-e', script], { stdin: 'pipe', stdout: 'pipe' });
      const { value } = await child.stdout.getReader().read();
      const pids = Buffer.from(value ?? [])
        .toString()
        .trim()
        .split(' ')
        .map(Number);
      const measureAll = (some: number[]) => measureDisk({ folder, pids: some, isInside: () => false }, NO_DISK_LIMIT);
      expect((await measureAll(pids.slice(0, 8))).is_uncountable).toBeUndefined();
      expect((await measureAll(pids)).is_uncountable).toBe(true);
      child.stdin.end();
      await child.exited;
    });
  });

  test.skipIf(!IS_ROOT)('includes a deleted file once that is mapped many times', async () => {
    await inFolder(async (folder) => {
      await using child = await mapDeleted(folder, 1_000);
      expect(await measure(folder, NO_DISK_LIMIT, child.pid)).toEqual({ bytes: 4 * KIB, files: 1 });
    });
  });

  test('is above every limit if its processes have mapped too many files to be counted', async () => {
    await inFolder(async (folder) => {
      const deep = join(folder, ...Array(15).fill('x'.repeat(250)));
      await mkdir(deep, { recursive: true });
      await using child = await mapDeleted(deep, 6_000);
      expect((await measure(folder, NO_DISK_LIMIT, child.pid)).is_uncountable).toBe(true);
      expect(listOpenFiles()).not.toContain(`/proc/${child.pid}/maps`);
    });
  });

  test('is read in pieces, so that a folder with millions of files does not fill the memory', async () => {
    await inFolder(async (folder) => {
      for (let file = 0; file < 1_000; file += 1) writeFileSync(join(folder, `${'n'.repeat(200)}-${file}`), '');
      const descriptor = openSync(folder, 'r');
      const pieces: string[][] = [];
      do pieces.push(readNames(descriptor).map(String));
      while (pieces.at(-1)?.length !== 0);
      closeSync(descriptor);
      expect(pieces.length).toBeGreaterThan(2);
      expect(pieces.flat().sort()).toEqual(readdirSync(folder).sort());
    });
  });

  test('is counted only until it is above the limit', async () => {
    await inFolder(async (folder) => {
      for (let file = 0; file < 50; file += 1) await writeFile(join(folder, String(file)), '');
      expect((await measure(folder, { ...NO_DISK_LIMIT, files: 10 })).files).toBe(11);
    });
  });

  test('of a folder that does not exist is nothing', async () => {
    expect(await measure('/nowhere/at/all')).toEqual({ bytes: 0, files: 0 });
  });
});

/** Measures a folder in a process that becomes another user once it has read its program. */
async function measureAsOtherUser(folder: string): Promise<DiskUse> {
  const script = `
    const { measureDisk } = await import(${JSON.stringify(Bun.resolveSync(MODULE, import.meta.dir))});
    process.seteuid(${STRANGER});
    const limit = ${JSON.stringify(NO_DISK_LIMIT)};
    console.log(JSON.stringify(await measureDisk({ folder: ${JSON.stringify(folder)}, pids: [] }, limit)));`;
  return JSON.parse(await Bun.$`${process.execPath} -e ${script}`.text());
}

describe('a server above its disk limit', () => {
  const muster = shareService({ MUSTER_SERVER_DISK_MB: '8' });
  let game: TestGame;
  let servers: ReturnType<typeof serversOf>;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    servers = serversOf(muster, game);
  });

  /**
   * The number of fallocate(2), which gives space to a file that stays empty: the output of the server, by its descriptor,
   * because its user cannot open the file.
   */
  const FALLOCATE = process.arch === 'arm64' ? 47 : 285;
  const KEEP_SIZE = 1;
  const FILL = 'cd "$HOME"; head -c 20000000 /dev/zero';
  /** Enough to make many files quickly. What the kernel remembers of the files counts as memory of the server. */
  const resources = { cpu: 1_000, memory: 512 };
  const TOO_MANY_FILES: Case = [
    'makes too many files',
    'cd "$HOME"; seq 1 100001 | xargs touch; echo done; exec sleep 600',
    'it exceeded its 100000 files',
  ];
  test.each<Case>([
    ['writes too much', `${FILL} > file; echo done; exec sleep 600`, 'it exceeded its 8 MiB of disk'],
    [
      'deletes what it has open',
      `cd "$HOME"; exec 4> file; rm file; ${FILL} >&4; echo done; exec sleep 600`,
      'it exceeded its 8 MiB of disk',
    ],
    [
      'allocates what no file shows',
      `perl -e 'syscall(${FALLOCATE}, 1, ${KEEP_SIZE}, 0, 20000000)'; echo done; exec sleep 600`,
      'it exceeded its 8 MiB of disk',
    ],
    [
      'makes its output longer without writing, again and again',
      `perl -e 'for (;;) { @file = stat(STDOUT); select(undef, undef, undef, 0.02);
        syscall(${FALLOCATE}, 1, 0, $file[7], 40000000) if $file[12] * 512 < 40000000 }'`,
      'it exceeded its 8 MiB of disk',
    ],
    [
      'nests folders too deeply',
      'cd "$HOME"; for n in $(seq 300); do mkdir n; cd n; done; echo done; exec sleep 600',
      'its files cannot be counted: it has folders more than 256 deep, more than 65,536 open files or too many memory-mapped files, or its container engine takes more than 30 s to count them',
    ],
    ...(IS_FULL_LENGTH ? [TOO_MANY_FILES] : []),
  ])(
    'that %s is ended with the reason, and nothing of it is left',
    async (_, script, failure) => {
      const server_id = await servers.run(script, { resources });
      expect(await waitForEndEvent(muster, server_id, END_WITHIN_MS)).toMatchObject({ failure });
      expect(await servers.linesOf(server_id, 'std_err')).toEqual([`[muster] ${failure}`]);
      expect(existsSync(join(muster.config.data_directory, 'servers', server_id))).toBe(false);
    },
    END_WITHIN_MS + 60_000,
  );

  test(
    'is ended with the reason, although it is ending and has time left',
    async () => {
      const fill = `${FILL} > file; while :; do sleep 1; done`;
      const server_id = await servers.run(`trap '${fill}' TERM; echo up; while :; do sleep 1; done`);
      await servers.waitForLines(server_id, 1);
      await servers.destroy(server_id, `?override_kill_timeout=${10 * END_WITHIN_MS}`);
      const failure = 'it exceeded its 8 MiB of disk';
      expect(await waitForEndEvent(muster, server_id, END_WITHIN_MS)).toMatchObject({ failure });
    },
    END_WITHIN_MS + 60_000,
  );

  const FAILURES: [code: 'STORAGE_FULL' | 'DATABASE_UNAVAILABLE', steps: string[]][] = [
    ['STORAGE_FULL', ['kill', 'remove']],
    ['DATABASE_UNAVAILABLE', ['kill']],
  ];
  test.each(FAILURES)('is killed although the database answers %s', async (code, steps) => {
    const ids = { game_id: crypto.randomUUID(), namespace_id: crypto.randomUUID(), build_id: crypto.randomUUID() };
    const server: ServerRow = {
      ...waitingServer({ ...ids, datacenter_id: crypto.randomUUID() }),
      identity: { pid: 1 },
    };
    const { server_id } = server;
    const done: string[] = [];
    const unrecorded_failures = new Map<string, string>();
    const stopping = new AbortController();
    const { stopped } = startLimitingDisk(
      {
        database: { ...muster.database, transact: () => Promise.reject(new ServiceError(code, {})) },
        clock: muster.clock,
        events: { emit() {} },
        measureDisk: async () => new Map([[server_id, { bytes: 9 * MIB, files: 1 }]]),
        runtime: {
          async kill() {
            done.push('kill');
            return new Set([server_id]);
          },
          remove: async () => void done.push('remove'),
        },
        unrecorded_failures,
        disk_max: { bytes: 8 * MIB, files: 1_000 },
        listServers: () => [server],
      },
      stopping.signal,
    );
    await waitFor(() => done.length === steps.length, 'the server to be killed');
    stopping.abort();
    await stopped;
    expect(done).toEqual(steps);
    expect([...unrecorded_failures]).toEqual([[server_id, 'it exceeded its 8 MiB of disk']]);
  });

  test('has no effect on one below it', async () => {
    const server_id = await servers.run('head -c 4000000 /dev/zero > "$HOME/file"; echo done; exec sleep 600');
    await servers.waitForLines(server_id, 1);
    const other = await servers.run(`${FILL} > file; exec sleep 600`);
    await waitForEndEvent(muster, other);
    expect((await servers.get(server_id)).destroyed_at).toBeUndefined();
    await servers.destroy(server_id, '?override_kill_timeout=0');
  });
});
