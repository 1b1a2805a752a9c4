import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
/** More than fit into the window and the rows beyond it. */
const VERSIONS = 60;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: dialogs', () => {
  let game: TestGame;
  let path: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });
  const makeVersions = async (name: string) => {
    for (let number = 0; number < VERSIONS; number += 1) {
      const body = { display_name: `${name} ${number}`, config: {} };
      await muster.api.ok('POST', `/cloud/games/${game.game_id}/versions`, { token: game.cloud_token, body });
    }
  };

  test('a question is not answered by the key that opened it: held, or pressed again', async () => {
    await using opened = await chromium.open(`${path}/settings`);
    const { page, problems } = opened;
    const revokes: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/tokens/revoke')) revokes.push(request.method());
    });
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Revoke all' }).focus();
    await page.keyboard.down('Enter');
    await dialog.waitFor();
    // Playwright says of each further one that the key is held.
    for (let times = 0; times < 5; times += 1) await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    expect(await dialog.isVisible()).toBe(true);
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    expect(revokes).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('a question of a row stays open while the page is scrolled, and while the list grows', async () => {
    await makeVersions('early');
    await using opened = await chromium.open(`${path}/versions`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Deploy' }).first().click();
    const question = page.getByRole('dialog').getByRole('heading', { name: 'Deploy' });
    const text = (await question.textContent()) ?? '';
    await page.mouse.move(20, 400);
    await page.mouse.wheel(0, 2_000);
    await page.waitForFunction(() => scrollY > 0);
    await makeVersions('late');
    await page.getByRole('heading', { name: text }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.mouse.wheel(0, -2_000);
    await page.getByText(`late ${VERSIONS - 1}`).waitFor();
    // A long list begins with the latest ones.
    await page.getByRole('button', { name: /^All \d+ versions$/ }).click();
    await page.waitForFunction((count) => {
      const row = document.querySelector('ul[aria-label="Versions"] > li');
      return Number(row?.getAttribute('aria-setsize')) > count;
    }, VERSIONS);
    expect(problems).toEqual([]);
  });

  test('what an earlier action did is not said in a dialog; why one failed not on another page', async () => {
    await using opened = await chromium.open(`${path}/settings`);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByRole('status').getByText('The limits are set.').waitFor();
    await page.getByRole('button', { name: 'Revoke all' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('heading').waitFor();
    expect(await dialog.getByText('The limits are set.').count()).toBe(0);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByLabel('Domain', { exact: true }).fill('not a domain');
    await page.getByRole('button', { name: 'Add domain' }).click();
    await page.getByRole('alert').getByText('CDN_INVALID_DOMAIN').waitFor();
    await page.getByRole('link', { name: 'Changes' }).click();
    await page.getByRole('heading', { name: 'Changes' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(problems).toEqual([]);
  });
});
