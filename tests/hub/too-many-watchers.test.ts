import { describe, expect, test } from 'bun:test';
import { makeGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService({ MUSTER_WATCHERS_PER_CALLER_MAX: '1' });
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a page of a caller who watches too much', () => {
  test('says so, keeps trying, and shows what it watches once it may', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    await using first = await chromium.open('/', game.cloud_token);
    await first.page.getByRole('link', { name: 'Test game' }).waitFor();
    await using second = await chromium.open('/', game.cloud_token);
    await second.page.getByRole('alert').getByText('TOO_MANY_WATCHERS').waitFor();
    expect(await second.page.getByText('Loading …').count()).toBe(0);
    await first.page.close();
    await second.page.getByRole('link', { name: 'Test game' }).waitFor();
    expect(await second.page.getByRole('alert').count()).toBe(0);
    expect([...first.problems, ...second.problems]).toEqual([]);
  });
});
