import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test';
import { mkdirSync, readdirSync, readlinkSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { openDataDirectory } from '../../src/platform/data-directory.ts';
import { POSTGRES_USER } from '../../src/platform/database/embedded.ts';
import { POSTGRES_FILES_VERSION, unpackPostgres } from '../../src/platform/database/postgres-files.ts';
import { makeDataDirectory } from '../support/service.ts';

describe("PostgreSQL's programs", () => {
  let parent: string;
  beforeEach(async () => {
    parent = await makeDataDirectory();
  });
  afterEach(() => rmSync(parent, { recursive: true, force: true }));

  test('are unpacked once for any number of concurrent callers, and an unfinished folder is not used', async () => {
    const before = process.umask(0o077);
    using _ = { [Symbol.dispose]: () => void process.umask(before) };
    using data = openDataDirectory(join(parent, 'data'));
    const directory = data.folder('postgres');
    const left = join(directory, `${POSTGRES_FILES_VERSION}.${crypto.randomUUID()}.unfinished`);
    mkdirSync(join(left, 'bin'), { recursive: true });
    const places = await Promise.all([unpackPostgres(directory), unpackPostgres(directory)]);

    const files = join(directory, POSTGRES_FILES_VERSION);
    expect(places).toEqual([files, files]);
    expect(readdirSync(directory).sort()).toEqual([POSTGRES_FILES_VERSION, basename(left)].sort());
    expect(readdirSync(join(files, 'bin')).sort()).toEqual(['initdb', 'postgres']);
    // As the user that runs them, also if the service's umask hides new files from others.
    const user = process.getuid?.() === 0 ? POSTGRES_USER : {};
    for (const program of ['initdb', 'postgres']) {
      const env = { LD_LIBRARY_PATH: join(files, 'lib') };
      const { stdout } = Bun.spawnSync([join(files, 'bin', program), '--version'], { env, ...user });
      expect(stdout.toString()).toStartWith(`${program} (PostgreSQL) ${POSTGRES_FILES_VERSION.split('.')[0]}.`);
    }

    writeFileSync(join(files, 'mark'), '');
    expect(await unpackPostgres(directory)).toBe(files);
    expect(readdirSync(files)).toContain('mark');
  });

  test('that a killed process left unfinished are removed an hour later', async () => {
    const names = ['young', 'old'].map((age) => `${POSTGRES_FILES_VERSION}.${age}.unfinished`);
    for (const name of names) mkdirSync(join(parent, name, 'bin'), { recursive: true });
    const two_hours_ago = Date.now() / 1_000 - 7_200;
    utimesSync(join(parent, names[1] ?? ''), two_hours_ago, two_hours_ago);
    await unpackPostgres(parent);
    expect(readdirSync(parent).sort()).toEqual([POSTGRES_FILES_VERSION, names[0]].sort() as string[]);
  });

  test('get their name once they are on the disk, so that a power failure leaves no empty ones', async () => {
    const handle = await open(parent);
    const synced: string[] = [];
    const sync = spyOn(Object.getPrototypeOf(handle), 'sync').mockImplementation(async function (this: FileHandle) {
      synced.push(readlinkSync(`/proc/self/fd/${this.fd}`));
    });
    using _ = { [Symbol.dispose]: () => sync.mockRestore() };
    await handle.close();
    const files = await unpackPostgres(parent);
    const unfinished = synced.map((path) => path.replace(/\.[0-9a-f-]+\.unfinished/, ''));
    const written = readdirSync(files, { recursive: true }).map((name) => join(files, name.toString()));
    // Also the folder of the name.
    expect(unfinished.toSorted()).toEqual([...written, files, parent].toSorted());
    expect(synced.filter((path) => !path.includes('.unfinished'))).toEqual([parent]);
    expect(synced.at(-1)).toBe(parent);
  });
});
