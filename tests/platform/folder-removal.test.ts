import { describe, expect, test } from 'bun:test';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from '../../src/platform/system/folder-removal.ts';
import { nestFolders } from '../support/nested-folders.ts';
import { IS_ROOT } from '../support/runtimes/runtimes.ts';
import { IMMEDIATE_MS } from '../support/wait.ts';

/** A user without rights. */
const OTHER_USER = 65_534;
const DEPTH = 1_500;
const MODULE = Bun.resolveSync('../../src/platform/system/folder-removal.ts', import.meta.dir);

const makeFolder = () => mkdtempSync(join(tmpdir(), 'muster-removal-'));

describe('removing a folder', () => {
  test('removes all that is in it, and nothing that links lead to', async () => {
    const [folder, other] = [makeFolder(), makeFolder()];
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    writeFileSync(join(folder, 'a/b/file'), '');
    writeFileSync(join(other, 'file'), '');
    symlinkSync(other, join(folder, 'a/link'));
    await removeFolder(folder);
    expect([existsSync(folder), existsSync(join(other, 'file'))]).toEqual([false, true]);
    await removeFolder(other);
  });

  test('has no effect if there is none', async () => {
    await removeFolder('/tmp/muster-nothing/at/all');
  });

  // The functions of the runtime would take a minute.
  test(
    'removes folders that are more than a thousand levels deep',
    async () => {
      const folder = makeFolder();
      nestFolders(folder, { name: 'd', count: DEPTH }, new Uint8Array());
      await removeFolder(folder);
      expect(existsSync(folder)).toBe(false);
    },
    IMMEDIATE_MS,
  );

  test('says why it failed', async () => {
    await expect(removeFolder('/proc/self/task')).rejects.toThrow('the folder could not be removed: rm ended with 1');
  });

  test.skipIf(!IS_ROOT)('removes folders that their owner may not write to, if the service is not root', async () => {
    const folder = makeFolder();
    mkdirSync(join(folder, 'closed/below'), { recursive: true });
    for (const name of ['closed/below/file', 'closed/file']) writeFileSync(join(folder, name), '');
    for (const name of ['closed/below', 'closed']) {
      chownSync(join(folder, name), OTHER_USER, OTHER_USER);
      chmodSync(join(folder, name), 0o500);
    }
    chownSync(folder, OTHER_USER, OTHER_USER);
    // A process that becomes another user once it has read its program. It leaves the folder itself, whose parent belongs to the user of the tests.
    const script = `
      const { removeFolder } = await import(${JSON.stringify(MODULE)});
      process.setgid(${OTHER_USER}); process.setuid(${OTHER_USER});
      await removeFolder(${JSON.stringify(join(folder, 'closed'))});`;
    await Bun.$`${process.execPath} -e ${script}`;
    expect([existsSync(folder), existsSync(join(folder, 'closed'))]).toEqual([true, false]);
    await removeFolder(folder);
  });
});
