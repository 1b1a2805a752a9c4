import { describe, expect, test } from 'bun:test';
import { WITHOUT_PAGES } from '../support/browser.ts';
import { makeGame } from '../support/game.ts';
import { shareChromium } from '../support/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('the page of a device link', () => {
  test('shows the code of the tool, and needs no token in a browser that is logged in to the hub', async () => {
    const { game_id } = await makeGame(muster.api, muster.administrator_token);
    const { device_link_url, device_link_token, code } = await muster.api.ok('POST', '/cloud/devices/links');
    await using opened = await chromium.open('/');
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    await page.goto(device_link_url);
    await page.getByText(code).waitFor();
    await page.getByLabel('Game').selectOption(game_id);
    await page.getByRole('button', { name: 'Give the tool a token for this game' }).click();
    await page.getByText('Done. The tool continues').waitFor();
    expect(problems).toEqual([]);
    const link = await muster.api.get(`/cloud/devices/links?device_link_token=${device_link_token}`);
    expect(link.body.cloud_token).toBeString();
  });
});
