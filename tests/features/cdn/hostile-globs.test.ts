import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { openExternalDatabase } from '../../support/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { makeHome } from '../../support/program.ts';
import { uploadSite } from '../../support/site.ts';

/** A regular expression would try every way to divide the letters. */
const HOSTILE = '*a*a*a*a*a*a*a*b';
const MORE_HOSTILE = `${'*a'.repeat(100)}b`;
const PATH = 'a'.repeat(1_000);
/** Without the protection it takes minutes. */
const ANSWERED_WITHIN_MS = 20_000;

test('globs: hostile ones in new and in stored versions are matched within seconds', async () => {
  await using database = await openExternalDatabase();
  // In a process of its own, so that a hang fails the test instead of hanging it.
  await using home = await makeHome({ DATABASE_URL: database.url, MUSTER_DEMO: 'off' });
  const { api, administrator_token } = await home.start();
  await using stored = openDatabase({ url: database.url }, 1);
  const game = await makeGame(api, administrator_token);
  const { game_id, namespace_id, cloud_token: token } = game;
  const site_id = await uploadSite(api, game, { [PATH]: 'found' });
  const { game: seen } = await api.ok('GET', `/cloud/games/${game_id}`, { token });
  const create = (glob: string) => {
    const headers = [{ name: 'X-Matched', value: 'yes' }];
    const routes = [{ glob, priority: 0, middlewares: [{ kind: { custom_headers: { headers } } }] }];
    return api.post(`/cloud/games/${game_id}/versions`, token, {
      display_name: crypto.randomUUID(),
      config: { cdn: { site_id, routes } },
    });
  };
  const answerOf = async (version_id: string) => {
    const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
    await api.ok('PUT', `${namespace}/version`, { token, body: { version_id } });
    const response = await fetch(`${api.base_url}/${PATH}`, {
      headers: { host: `${seen.name_id}.sites.localhost` },
      signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
    });
    return [response.status, await response.text(), response.headers.get('x-matched')];
  };

  expect(await answerOf((await create(HOSTILE)).body.version_id)).toEqual([200, 'found', null]);

  const refused = await create(MORE_HOSTILE);
  expect([refused.status, refused.body.code]).toEqual([400, 'VALIDATION_ERROR']);
  expect(refused.body.message).toContain('config.cdn.routes.0.glob.too-complex');

  const { version_id } = (await create('**')).body;
  await stored.queries.execute(sql`
    update versions set config = jsonb_set(config, '{cdn,routes,0,glob}', to_jsonb(${MORE_HOSTILE}::text))
    where version_id = ${version_id}`);
  expect(await answerOf(version_id)).toEqual([200, 'found', null]);
});
