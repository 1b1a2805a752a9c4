import { expect, test } from 'bun:test';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createDiskObjects } from '../../src/platform/objects/disk.ts';
import { piecesOf } from '../support/pieces.ts';
import { makeDataDirectory } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const OPENER = `
import { createDiskObjects } from '${join(import.meta.dir, '../../src/platform/objects/disk.ts')}';
async function* endless() {
  for (;;) {
    yield Buffer.alloc(1_000);
    await Bun.sleep(5);
  }
}
await createDiskObjects(process.argv[1]).put('upload/1', endless(), 1e12);
`;

test('objects on disk: an unfinished object of a killed process is removed once it is old, and nothing else is', async () => {
  const directory = await makeDataDirectory();
  await using _left = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
  const filesOf = async () =>
    (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).length;
  const objects = createDiskObjects(directory);
  await objects.put('upload/0', piecesOf('whole'), 5);

  const child = Bun.spawn([process.execPath, '-e', OPENER, directory], { stdio: ['ignore', 'ignore', 'inherit'] });
  await waitFor(async () => (await filesOf()) === 2, 'the second object to be under way');
  child.kill('SIGKILL');
  await child.exited;
  expect([...(await objects.list('upload'))]).toEqual([['upload/0', 5]]);

  await objects.removeUnfinished(new Date(Date.now() - 3_600_000));
  expect(await filesOf()).toBe(2);
  await objects.removeUnfinished(new Date(Date.now() + 3_600_000));
  expect(await filesOf()).toBe(1);
  expect(await new Response(await objects.read('upload/0')).text()).toBe('whole');
});

test('objects on disk: files of other programs are not listed', async () => {
  const directory = await makeDataDirectory();
  await using _left = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
  const objects = createDiskObjects(directory);
  await objects.put('upload/0', piecesOf('whole'), 5);
  for (const name of ['.nfs0000', 'README']) await writeFile(join(directory, 'upload', name), 'other');
  expect([...(await objects.list('upload'))]).toEqual([['upload/0', 5]]);
});
