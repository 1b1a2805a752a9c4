import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openDataDirectory } from '../../src/platform/data-directory.ts';
import { StartError } from '../../src/platform/errors.ts';
import { mountSmallDisk } from '../support/objects/small-disk.ts';
import { findProcessesOf } from '../support/processes.ts';
import { refusalOf } from '../support/refusal.ts';
import { makeDataDirectory } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const IS_ROOT = process.getuid?.() === 0;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let parent: string;
let count = 0;
beforeAll(async () => {
  parent = await makeDataDirectory();
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** Returns the path of a directory that does not exist yet. */
function newPath(): string {
  count += 1;
  return join(parent, `data-${count}`);
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe('a data directory is refused with a sentence that says what to do', () => {
  test('while another Muster uses it, and accepted once that one has ended', () => {
    const path = newPath();
    const first = openDataDirectory(path);
    const { message } = refusalOf(StartError, () => openDataDirectory(path));
    expect(message).toBe(
      `The data directory ${path} is in use by another Muster: stop that one, or set MUSTER_DATA to another directory.`,
    );
    first[Symbol.dispose]();
    using second = openDataDirectory(path);
    expect(second.node_id).toBe(first.node_id);
  });

  test('whichever path leads to it', () => {
    const path = newPath();
    using _ = openDataDirectory(path);
    const { message } = refusalOf(StartError, () =>
      openDataDirectory(`${dirname(path)}/./${path.slice(parent.length)}/`),
    );
    expect(message).toContain(`${path} is in use`);
  });

  const CASES: { name: string; reason: string; spoil(path: string): string }[] = [
    {
      name: 'when a file is in its place',
      reason: 'EEXIST',
      spoil(path) {
        writeFileSync(path, '');
        return path;
      },
    },
    {
      name: 'when a file is in the place of its parent',
      reason: 'ENOTDIR',
      spoil(path) {
        writeFileSync(path, '');
        return join(path, 'data');
      },
    },
    {
      name: 'when its lock cannot be opened',
      reason: 'EISDIR',
      spoil(path) {
        mkdirSync(join(path, 'lock'), { recursive: true });
        return path;
      },
    },
    {
      name: 'when a file is in the place of a folder',
      reason: 'EEXIST',
      spoil(path) {
        mkdirSync(path);
        writeFileSync(join(path, 'builds'), '');
        return path;
      },
    },
    {
      name: "when this machine's id cannot be read",
      reason: 'EISDIR',
      spoil(path) {
        mkdirSync(join(path, 'node-id'), { recursive: true });
        return path;
      },
    },
    {
      name: 'when it cannot be written',
      reason: 'E[A-Z]+',
      spoil: () => '/proc/sys/muster',
    },
  ];
  for (const { name, reason, spoil } of CASES) {
    test(name, () => {
      const path = spoil(newPath());
      const { message } = refusalOf(StartError, () => openDataDirectory(path));
      expect(message).toMatch(
        new RegExp(
          `^The data directory cannot be written at /\\S+ \\(${reason}\\): let this user write there, or set MUSTER_DATA to another directory\\.$`,
        ),
      );
    });
  }

  test('on a full disk', async () => {
    await using disk = await mountSmallDisk(1);
    if (!disk) return;
    const path = join(disk.directory, 'data');
    using data = openDataDirectory(path);
    await disk.fillUntil(0);
    const { message } = refusalOf(StartError, () => data.writeSecret('secret', 'x'.repeat(100_000)));
    expect(message).toBe(
      `The data directory cannot be written at ${path}/secret (ENOSPC): free space on its disk, or set MUSTER_DATA to another directory.`,
    );
  });

  test('and is unlocked after a refusal half-way', () => {
    const path = newPath();
    mkdirSync(path);
    writeFileSync(join(path, 'servers'), '');
    refusalOf(StartError, () => openDataDirectory(path));
    rmSync(join(path, 'servers'));
    using data = openDataDirectory(path);
    expect(data.path).toBe(path);
  });

  test.skipIf(!IS_ROOT)('when the service is root and other users cannot enter the directory', () => {
    const path = newPath();
    mkdirSync(path, { mode: 0o700 });
    const { message } = refusalOf(StartError, () => openDataDirectory(join(path, 'data')));
    expect(message).toContain(`The data directory ${path}/data is below a directory that other users cannot enter`);
    expect(message).toContain('set MUSTER_DATA to another directory, for example /var/lib/muster.');
  });
});

describe('a data directory', () => {
  const MODES = {
    postgres: '711',
    objects: '700',
    compressed: '700',
    builds: '711',
    servers: '711',
    programs: '711',
  } as const;
  const FOLDERS = ['postgres', 'objects', 'compressed', 'builds', 'servers', 'programs'] as const;
  for (const umask of [0o022, 0o077, 0o000]) {
    test(`has the same modes under any umask: ${umask.toString(8)}`, () => {
      const before = process.umask(umask);
      try {
        using data = openDataDirectory(newPath());
        expect(modeOf(data.path)).toBe('711');
        expect(Object.fromEntries(FOLDERS.map((name) => [name, modeOf(data.folder(name))]))).toEqual(MODES);
        expect(modeOf(join(data.path, 'lock'))).toBe('600');
        expect(modeOf(join(data.path, 'node-id'))).toBe('600');
      } finally {
        process.umask(before);
      }
    });
  }

  test('restores the modes of its folders after a copy has lost them', () => {
    const path = newPath();
    openDataDirectory(path)[Symbol.dispose]();
    for (const name of FOLDERS) chmodSync(join(path, name), name === 'objects' ? 0o777 : 0o700);
    using data = openDataDirectory(path);
    expect(Object.fromEntries(FOLDERS.map((name) => [name, modeOf(data.folder(name))]))).toEqual(MODES);
  });

  test("keeps this machine's id", () => {
    const path = newPath();
    const first = openDataDirectory(path);
    first[Symbol.dispose]();
    using second = openDataDirectory(path);
    expect(first.node_id).toMatch(UUID);
    expect(second.node_id).toBe(first.node_id);
  });

  test('gets a new machine id when the old one was only half written', () => {
    const path = newPath();
    mkdirSync(path);
    writeFileSync(join(path, 'node-id'), '');
    const first = openDataDirectory(path);
    first[Symbol.dispose]();
    expect(first.node_id).toMatch(UUID);
    using second = openDataDirectory(path);
    expect(second.node_id).toBe(first.node_id);
  });

  test('keeps secrets in files that only its owner can read, also in place of a readable one', () => {
    using data = openDataDirectory(newPath());
    const file = join(data.path, 'administrator-token');
    writeFileSync(file, 'old', { mode: 0o644 });
    chmodSync(file, 0o644);
    expect(data.writeSecret('administrator-token', 'secret\n')).toBe(file);
    expect(modeOf(file)).toBe('600');
    expect(readFileSync(file, 'utf8')).toBe('secret\n');
    expect(existsSync(`${file}.unfinished`)).toBe(false);
  });

  test('is unlocked as soon as the process that holds it is killed', async () => {
    const path = newPath();
    const source = `
      const { openDataDirectory } = await import('${join(import.meta.dir, '../../src/platform/data-directory.ts')}');
      openDataDirectory('${path}');
      // What it leaves behind must not hold the lock for it.
      Bun.spawn(['sleep', '60'], { stdio: ['ignore', 'ignore', 'ignore'], detached: true, env: { MARK: '${path}' } }).unref();
      console.log('open');
      setInterval(() => {}, 1e9);`;
    const child = Bun.spawn([process.execPath, '-e', source], { stdout: 'pipe', stderr: 'inherit' });
    const reader = child.stdout.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('open\n');
    expect(() => openDataDirectory(path)).toThrow('is in use by another Muster');
    child.kill('SIGKILL');
    await child.exited;
    // For a moment after its start, a process shows no environment.
    const left = await waitFor(() => {
      const found = findProcessesOf(path);
      return found.length > 0 && found;
    }, 'what the process left behind');
    expect(left).toHaveLength(1);
    using data = openDataDirectory(path);
    expect(data.path).toBe(path);
    for (const pid of left) process.kill(pid, 'SIGKILL');
  });
});
