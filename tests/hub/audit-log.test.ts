import { describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { PAGE_ENTRIES } from '../../src/features/audit/store.ts';
import { makeGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: the audit log', () => {
  test('a double click shows a page of earlier changes once', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const its_path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/domain-public-auth`;
    for (let change = 0; change < PAGE_ENTRIES; change += 1) {
      await muster.api.ok('PUT', its_path, { token: game.cloud_token, body: { enabled: change % 2 === 0 } });
    }
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod/changes`, game.cloud_token);
    const { page, problems } = opened;
    const asked: string[] = [];
    const clicked = Promise.withResolvers<void>();
    await page.route('**/audit-log?before=*', async (route) => {
      asked.push(route.request().url());
      await clicked.promise;
      await route.continue();
    });
    const button = page.getByRole('button', { name: 'Earlier changes' });
    await button.dblclick();
    clicked.resolve();
    await button.waitFor({ state: 'detached' });
    expect(asked).toHaveLength(1);
    const log = `/cloud/games/${game.game_id}/audit-log`;
    const latest = await muster.api.ok('GET', log, { token: game.cloud_token });
    const earlier = await muster.api.ok('GET', `${log}?before=${latest.next}`, { token: game.cloud_token });
    expect(await page.locator('tbody tr').count()).toBe(latest.entries.length + earlier.entries.length);
    expect(problems).toEqual([]);
  });

  test('a change of which it is not known how it ended is marked', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const its_path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/domain-public-auth`;
    await muster.api.ok('PUT', its_path, { token: game.cloud_token, body: { enabled: true } });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await muster.database.queries.execute(sql`
      update audit_entries set outcome = 'begun' where game_id = ${game.game_id} and operation = 'setDomainPublicAuth'`);
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod/changes`, game.cloud_token);
    const row = opened.page.locator('tbody tr').filter({ hasText: 'setDomainPublicAuth' });
    await row.getByText('begun', { exact: true }).waitFor();
  });
});
