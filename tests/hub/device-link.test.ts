import { describe, expect, test } from 'bun:test';
import { makeGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { makeGuest } from '../support/people.ts';
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

  test('asks for a token in a browser that is logged in by one that cannot complete a link', async () => {
    const { game_id, cloud_token } = await makeGame(muster.api, muster.administrator_token);
    const { device_link_url } = await muster.api.ok('POST', '/cloud/devices/links');
    await using opened = await chromium.open('/', cloud_token);
    const { page, problems } = opened;
    await page.goto(device_link_url);
    await page.getByLabel('Your token').fill(muster.administrator_token);
    await page.getByRole('button', { name: 'Show my games' }).click();
    await page.getByLabel('Game').selectOption(game_id);
    await page.getByRole('button', { name: 'Give the tool a token for this game' }).click();
    await page.getByText('Done. The tool continues').waitFor();
    expect(problems).toEqual([]);
  });

  test('says what is wrong and asks for another token if the logged-in person has no games', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const guest = await makeGuest(muster.api, game);
    const { device_link_url } = await muster.api.ok('POST', '/cloud/devices/links');
    await using opened = await chromium.open('/', guest.token);
    const { page } = opened;
    await page.goto(device_link_url);
    await page.getByText('You have no game yet').waitFor();
    await page.getByLabel('Your token').fill(muster.administrator_token);
    await page.getByRole('button', { name: 'Show my games' }).click();
    await page.getByLabel('Game').selectOption(game.game_id);
  });

  test('asks for a token if the session cannot be read', async () => {
    const { game_id } = await makeGame(muster.api, muster.administrator_token);
    const { device_link_url } = await muster.api.ok('POST', '/cloud/devices/links');
    await using opened = await chromium.open('/');
    const { page } = opened;
    await page.route('**/hub/session/token', (route) => route.abort());
    await page.goto(device_link_url);
    await page.getByLabel('Your token').fill(muster.administrator_token);
    await page.getByRole('button', { name: 'Show my games' }).click();
    await page.getByLabel('Game').selectOption(game_id);
  });
});
