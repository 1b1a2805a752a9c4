import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDataDirectory } from '../../src/platform/data-directory.ts';
import { connectEmbedded } from '../../src/platform/database/connect.ts';
import { POSTGRES_FILES_VERSION, unpackPostgres } from '../../src/platform/database/postgres-files.ts';
import { makeDataDirectory } from '../support/service.ts';

describe('the programs of PostgreSQL', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await makeDataDirectory();
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test('are made available once, however many want them at once, and not from what was left half-made', async () => {
    const left = join(directory, `${POSTGRES_FILES_VERSION}.${crypto.randomUUID()}.unfinished`);
    mkdirSync(join(left, 'bin'), { recursive: true });
    const places = await Promise.all([unpackPostgres(directory), unpackPostgres(directory)]);
    expect(new Set(places)).toEqual(new Set([join(directory, POSTGRES_FILES_VERSION)]));
    expect(readdirSync(directory).sort()).toEqual([POSTGRES_FILES_VERSION, left.slice(directory.length + 1)].sort());

    const files = join(directory, POSTGRES_FILES_VERSION);
    expect(readdirSync(join(files, 'bin')).sort()).toEqual(['initdb', 'postgres']);
    for (const program of ['initdb', 'postgres']) {
      expect((statSync(join(files, 'bin', program)).mode & 0o777).toString(8)).toBe('755');
    }
    writeFileSync(join(files, 'mark'), '');
    expect(await unpackPostgres(directory)).toBe(files);
    expect(readdirSync(files)).toContain('mark');
  });

  test('run on the first start of whoever lets nobody read his new files', async () => {
    const umask = process.umask(0o077);
    try {
      using data = openDataDirectory(join(directory, 'data'));
      const options = { directory: data.folder('postgres'), is_durable: false, events: { emit() {} } };
      await using database = await connectEmbedded(options, 2);
      expect([...(await database.queries.execute(sql`select 1 as one`))]).toEqual([{ one: 1 }]);
    } finally {
      process.umask(umask);
    }
  });
});
