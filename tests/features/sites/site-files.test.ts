import { expect, test } from 'bun:test';
import { createSiteFiles } from '../../../src/features/sites/site-files.ts';
import type { UploadFileRow } from '../../../src/features/uploads/uploads.ts';

const fileOf = (upload_id: string, file_number: number, folder: string): UploadFileRow => ({
  upload_id,
  file_number,
  path: `${folder}${file_number}.js`,
  content_type: null,
  content_length: 1,
  object_ids: [],
  sha256: null,
  shared_upload_id: null,
  shared_file_number: null,
});

interface Sites {
  /** The number of files of each site. */
  count: number;
  /** What each path begins with. */
  folder?: string;
  bytes_max?: number;
  beforeAnswer?: (upload_id: string) => Promise<void>;
}

/** Creates the cache, and counts the reads of each site. */
function openFiles({ count, folder = '', bytes_max, beforeAnswer = async () => {} }: Sites) {
  const reads = new Map<string, number>();
  const files = createSiteFiles(async (upload_id) => {
    reads.set(upload_id, (reads.get(upload_id) ?? 0) + 1);
    await beforeAnswer(upload_id);
    return Array.from({ length: count }, (_, file_number) => fileOf(upload_id, file_number, folder));
  }, bytes_max);
  return { files, reads };
}

test('site files: requests for one site share a read, also those that come before it has ended', async () => {
  const { files, reads } = openFiles({ count: 2 });
  const answers = await Promise.all(Array.from({ length: 50 }, () => files.of('site')));
  for (const answer of [...answers, await files.of('site')]) expect([...answer.keys()]).toEqual(['0.js', '1.js']);
  expect([...reads]).toEqual([['site', 1]]);
});

test('site files: a read that fails is repeated for the next request', async () => {
  let fails = true;
  const { files, reads } = openFiles({
    count: 1,
    async beforeAnswer() {
      if (fails) throw new Error('the database is away');
    },
  });
  const outcomes = await Promise.allSettled([files.of('site'), files.of('site')]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  fails = false;
  expect((await files.of('site')).size).toBe(1);
  expect(reads.get('site')).toBe(2);
});

test('site files: any number of small sites stay in memory, and large ones have a limit', async () => {
  const small = openFiles({ count: 1 });
  for (let pass = 0; pass < 2; pass += 1) {
    for (let site = 0; site < 1_000; site += 1) await small.files.of(`${site}`);
  }
  expect(new Set(small.reads.values())).toEqual(new Set([1]));
  const large = openFiles({ count: 10, bytes_max: 140_000 });
  for (let site = 0; site < 11; site += 1) await large.files.of(`${site}`);
  await large.files.of('10');
  await large.files.of('0');
  expect([large.reads.get('10'), large.reads.get('0')]).toEqual([1, 2]);
});

test('site files: long paths count', async () => {
  const { files, reads } = openFiles({ count: 10, bytes_max: 140_000, folder: 'x'.repeat(3_000) });
  for (const site of ['a', 'b', 'c', 'a']) await files.of(site);
  expect(reads.get('a')).toBe(2);
});

test('site files: a site that is evicted while it is read has its files', async () => {
  const answered = Promise.withResolvers<void>();
  const { files } = openFiles({
    count: 10,
    bytes_max: 140_000,
    beforeAnswer: (upload_id) => (upload_id === 'slow' ? answered.promise : Promise.resolve()),
  });
  const slow = files.of('slow');
  for (let site = 0; site < 20; site += 1) await files.of(`${site}`);
  answered.resolve();
  expect((await slow).size).toBe(10);
});
