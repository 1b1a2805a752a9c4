import { expect, test } from 'bun:test';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackArchive } from '../../../src/features/builds/archives/unpack.ts';
import { makeDataDirectory } from '../../support/service.ts';
import { packTar } from '../../support/tar.ts';

test('archives: files have the time that their archive says, so that all machines make the same image of them', async () => {
  const directory = await makeDataDirectory();
  const changed_at = { old: 0, new: 1_700_000_000 };
  const entries = Object.entries(changed_at).map(([name, at]) => ({ name, mtime: new Date(at * 1_000) }));
  const archive = await packTar(entries);
  await unpackArchive(new Blob([new Uint8Array(archive)]).stream(), directory);
  for (const [name, at] of Object.entries(changed_at)) {
    expect([name, (await stat(join(directory, name))).mtimeMs]).toEqual([name, at * 1_000]);
  }
});
