import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { openTestService } from '../../support/service.ts';
import { showSite, uploadSite } from '../../support/site.ts';

test('sites: a stored content type that no header can have is replaced by that of the file name', async () => {
  await using muster = await openTestService();
  const game = await makeGame(muster.api, muster.administrator_token);
  const { game: seen } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  const site_id = await uploadSite(muster.api, game, { 'index.html': 'one', 'notes.txt': 'two', 'thing.zzz': 'three' });
  await using database = openDatabase(muster.database_address, 2);
  // As versions before the check of content types stored it.
  await database.queries.execute(sql`update upload_files set content_type = ${'text/html\r\nX-Injected: ä'}`);
  await showSite(muster.api, game, { site_id });
  const seenTypes: unknown[] = [];
  for (const path of ['', 'notes.txt', 'thing.zzz']) {
    const { status, headers } = await fetch(`${muster.config.public_url}/${path}`, {
      headers: { host: `${seen.name_id}.sites.localhost` },
    });
    seenTypes.push([status, headers.get('content-type'), headers.get('x-injected')]);
  }
  expect(seenTypes).toEqual([
    [200, 'text/html; charset=utf-8', null],
    [200, 'text/plain; charset=utf-8', null],
    [200, 'application/octet-stream', null],
  ]);
});
