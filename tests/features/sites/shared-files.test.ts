import { beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { selectShareableFiles } from '../../../src/features/uploads/store.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { countReadRows } from '../../support/database/table-scans.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { sha256 } from '../../support/objects/digest.ts';
import { showSite } from '../../support/site.ts';
import { shareService } from '../../support/suite.ts';
import { completion, type PartRequest, sendPart } from '../../support/uploads.ts';

const muster = shareService();
let game: TestGame;
let other: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  other = await makeGame(muster.api, muster.administrator_token);
});

type Files = Record<string, string>;

/** Prepares a site whose files have digests. */
async function prepare(files: Files, { game_id, cloud_token: token } = game) {
  const listed = Object.entries(files).map(([path, content]) => ({
    path,
    content_length: content.length,
    sha256: sha256(content),
  }));
  const body = { display_name: 'Site', files: listed };
  const answer = await muster.api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body });
  const { site_id, upload_id, presigned_requests } = answer;
  return { site_id, upload_id, requests: presigned_requests as PartRequest[] };
}

async function upload(files: Files, of = game): Promise<{ site_id: string; sent: string[] }> {
  const { requests, ...prepared } = await prepare(files, of);
  for (const request of requests) expect(await sendPart(request, files[request.path] ?? '')).toBe('200 accepted');
  expect(await completion(muster, prepared, of.cloud_token)).toBe('200 complete');
  return { site_id: prepared.site_id, sent: requests.map(({ path }) => path) };
}

test('sites: files of earlier sites of the game need not be sent again, under any path, and are served', async () => {
  const first = { 'index.html': 'one page', 'a.js': 'script', 'b.js': 'script' };
  expect((await upload(first)).sent).toEqual(['index.html', 'a.js', 'b.js']);
  const second = { 'index.html': 'other page', 'a.js': 'script', 'moved.js': 'script' };
  expect((await upload(second)).sent).toEqual(['index.html']);
  // Shared by a site whose files are shared themselves.
  const third = { 'index.html': 'one page', 'moved.js': 'script', empty: '' };
  const { site_id, sent } = await upload(third);
  expect(sent).toEqual(['empty']);
  await showSite(muster.api, game, { site_id });
  const { game: seen } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  const headers = { host: `${seen.name_id}.sites.localhost` };
  for (const [path, content] of Object.entries(third)) {
    expect(await (await fetch(`${muster.api.base_url}/${path}`, { headers })).text()).toBe(content);
  }
});

test('sites: a file that a later site shares keeps its ETag, also compressed', async () => {
  const script = 'let a;'.repeat(1_000);
  const { game: seen } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  const get = (path: string, headers: Record<string, string>) =>
    fetch(`${muster.api.base_url}/${path}`, { headers: { host: `${seen.name_id}.sites.localhost`, ...headers } });
  const etagsOf = async (path: string) => {
    const answers = ['identity', 'gzip'].map((encoding) => get(path, { 'accept-encoding': encoding }));
    return (await Promise.all(answers)).map(({ headers }) => headers.get('etag') ?? '');
  };
  const show = async (files: Files) => await showSite(muster.api, game, { site_id: (await upload(files)).site_id });
  await show({ 'first.txt': 'one', 'kept.js': script, 'changed.txt': 'some' });
  const before = await etagsOf('kept.js');
  const [changed_before] = await etagsOf('changed.txt');
  await show({ 'changed.txt': 'other', 'kept.js': script });
  expect(new Set(before).size).toBe(2);
  expect(await etagsOf('kept.js')).toEqual(before);
  for (const etag of before) {
    const seen_before = await get('kept.js', { 'accept-encoding': 'gzip', 'if-none-match': etag });
    expect(seen_before.status).toBe(304);
  }
  expect((await etagsOf('changed.txt'))[0]).not.toBe(changed_before);
});

test('sites: an upload counts the files that it shares as received', async () => {
  await upload({ a: 'counted' });
  const { upload_id } = await prepare({ a: 'counted', b: 'new' });
  const path = `/cloud/games/${game.game_id}/uploads/${upload_id}`;
  const { upload: seen } = await muster.api.ok('GET', path, { token: game.cloud_token });
  expect(seen).toMatchObject({ content_length: 10, received_length: 7 });
});

test('sites: files of other games, and of sites that are not complete, are not shared', async () => {
  await upload({ a: 'theirs' }, other);
  expect((await prepare({ a: 'theirs' })).requests).toHaveLength(1);
  const { requests } = await prepare({ a: 'unfinished' });
  for (const request of requests) await sendPart(request, 'unfinished');
  expect((await prepare({ a: 'unfinished' })).requests).toHaveLength(1);
});

test('sites: as many files as a site may have are listed by one request, and shared with many earlier sites', async () => {
  await using database = openDatabase(muster.database_address, 1);
  const { game_id, cloud_token: token } = game;
  const files = Array.from({ length: 10_000 }, (_, n) => ({
    path: `assets/textures/landscape/tiles/${'x'.repeat(40)}-${n}.webp`,
    content_type: 'image/webp',
    content_length: 100_000 + n,
    sha256: sha256(`texture ${n}`),
  }));
  const column = (key: 'path' | 'content_length' | 'sha256') => sql.param(files.map((file) => file[key]));
  for (let time = 0; time < 5; time += 1) {
    const upload_id = crypto.randomUUID();
    await database.queries.execute(sql`
      insert into uploads (upload_id, game_id, kind, is_multipart, content_length, create_ts, complete_ts)
      values (${upload_id}, ${game_id}, 'site', true, 1, now(), now())`);
    await database.queries.execute(sql`
      insert into upload_files (upload_id, game_id, file_number, path, content_length, sha256, receipts)
      select ${upload_id}, ${game_id}, row_number() over (), file.*, array[gen_random_uuid()]
      from unnest(${column('path')}::text[], ${column('content_length')}::bigint[], ${column('sha256')}::text[]) as file`);
  }
  await database.queries.execute(sql`analyze uploads, upload_files`);
  const body = JSON.stringify({ display_name: 'Site', files });
  expect(body.length).toBeGreaterThan(1024 ** 2);
  const { presigned_requests } = await muster.api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body });
  expect(presigned_requests).toEqual([]);

  const refused = await muster.api.call('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body: body.padEnd(5e6) });
  expect([refused.status, refused.body.code]).toEqual([413, 'API_BODY_TOO_LARGE']);
  expect(refused.body.message).toContain('larger than 4194304 bytes');
});

test('sites: the search for a file to share does not read equal files of other games', async () => {
  await using database = openDatabase(muster.database_address, 1);
  const { queries } = database;
  const digest = sha256('in many games');
  await upload({ a: 'in many games' });
  await upload({ a: 'in many games' }, other);
  const copies = 5_000;
  await queries.execute(sql`
    insert into upload_files (upload_id, game_id, file_number, path, content_length, sha256, receipts)
    select upload_id, game_id, number, 'copy-' || number, content_length, sha256, receipts
    from upload_files cross join generate_series(1, ${copies}::int) as number
    where sha256 = ${digest} and game_id = ${other.game_id}`);
  await queries.execute(sql`analyze upload_files`);
  const before = await countReadRows(queries, 'upload_files');
  const found = await selectShareableFiles(queries, { game_id: game.game_id, kind: 'site' }, [digest]);
  expect(found.map(({ sha256: found_digest }) => found_digest)).toEqual([digest]);
  expect((await countReadRows(queries, 'upload_files')) - before).toBeLessThan(10);
});

test('sites: a file with other bytes than its digest says is refused', async () => {
  const { requests, ...prepared } = await prepare({ a: 'right' });
  const [request] = requests;
  if (!request) throw new Error('the file has a request');
  expect(await sendPart(request, 'wrong')).toBe('400 UPLOAD_INVALID');
  expect(await completion(muster, prepared, game.cloud_token)).toBe('400 UPLOAD_INCOMPLETE');
  expect(await sendPart(request, 'right')).toBe('200 accepted');
  expect(await completion(muster, prepared, game.cloud_token)).toBe('200 complete');
});
