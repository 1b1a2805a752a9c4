import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packServer } from '../../src/cli/project/package.ts';
import { toFailure } from '../../src/terminal/failure.ts';

let home: string;
/** The directory for temporary files while this file runs: others write to that of the machine meanwhile. */
let temporary: string;
const { TMPDIR } = process.env;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-packing-'));
  temporary = join(home, 'temporary');
  await mkdir(temporary);
  process.env.TMPDIR = temporary;
});
afterAll(async () => {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  await rm(home, { recursive: true, force: true });
});

const COMMAND = ['./server'];

test('packing: a directory is compressed to a file, which is deleted after use; equal files have an equal digest', async () => {
  const path = join(home, 'game');
  for (const name of ['server', 'data/empty']) await Bun.write(join(path, name), '');
  await Bun.write(join(path, 'data/large'), new Uint8Array(3_000_000).fill(7));
  await chmod(join(path, 'server'), 0o644);
  const server = await packServer({ path, command: COMMAND });
  const content = await server.open();
  const tar = await Bun.zstdDecompress(await content.blob.bytes());
  expect(readdirSync(temporary)).not.toEqual([]);
  const digest = new Bun.CryptoHasher('sha256').update(JSON.stringify(COMMAND)).update(tar).digest('hex');
  expect(server.digest).toBe(digest);
  const files = await new Bun.Archive(tar).files();
  expect([...files].map(([name, { size }]) => [name, size])).toEqual([
    ['data/empty', 0],
    ['data/large', 3_000_000],
    ['server', 0],
  ]);
  await content[Symbol.asyncDispose]();
  expect(readdirSync(temporary)).toEqual([]);

  expect((await packServer({ path, command: COMMAND })).digest).toBe(digest);
  await Bun.write(join(path, 'data/large'), 'another');
  expect((await packServer({ path, command: COMMAND })).digest).not.toBe(digest);
});

test('packing: a file that is changed before it is packed ends it, although its length is the same', async () => {
  const path = join(home, 'changing');
  await Bun.write(join(path, 'server'), 'AAAA');
  const server = await packServer({ path, command: COMMAND });
  await Bun.write(join(path, 'server'), 'BBBB');
  const error: unknown = await server.open().catch((reason: unknown) => reason);
  expect(toFailure(error)?.message).toContain('changed while it was packed');
  expect(readdirSync(temporary)).toEqual([]);
});

test('packing: a file that cannot be read, or that changes meanwhile, ends it, and nothing is left', async () => {
  const WRONG: [target: string, message: string][] = [
    ['/proc/sys/vm/compact_memory', 'cannot be read or written (EACCES)'],
    // Has no size, and a content.
    ['/proc/self/status', 'changed while it was packed'],
  ];
  for (const [index, [target, message]] of WRONG.entries()) {
    const path = join(home, `wrong-${index}`);
    await Bun.write(join(path, 'server'), '');
    await symlink(target, join(path, 'link'));
    const error: unknown = await packServer({ path, command: COMMAND }).catch((reason: unknown) => reason);
    expect(toFailure(error)?.message).toContain(message);
  }
  expect(readdirSync(temporary)).toEqual([]);
});
