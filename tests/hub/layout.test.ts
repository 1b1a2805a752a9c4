import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { makeGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
/** The windows of 1280 x 800 and of 1280 x 1024 at a zoom of 200 % and 400 %. */
const ZOOMED = { twice: { width: 640, height: 400 }, four_times: { width: 320, height: 256 } };
/** Controls before the last one of the settings. */
const CONTROLS = 28;

const excessOf = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Returns the text of the control with the focus if the bar hides all of it. */
const hiddenControl = (page: Page) =>
  page.evaluate(() => {
    const control = document.activeElement;
    const bar = document.querySelector('header.bar')?.getBoundingClientRect().bottom ?? 0;
    if (!control || control.closest('header') || control.getBoundingClientRect().bottom > bar) return undefined;
    return control.outerHTML;
  });

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: the layout', () => {
  test('the control with the focus is not below the bar', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.openPage();
    const { page } = opened;
    await page.setViewportSize(ZOOMED.twice);
    await page.goto(await chromium.linkTo(`/hub/${its.name_id}/prod/settings`));
    await page.getByRole('button', { name: 'Save limits' }).waitFor();
    await page.getByRole('button', { name: 'Invite someone' }).focus();
    const hidden: (string | undefined)[] = [];
    for (let count = 0; count < CONTROLS; count += 1) {
      await page.keyboard.press('Shift+Tab');
      hidden.push(await hiddenControl(page));
    }
    expect(hidden.filter((control) => control !== undefined)).toEqual([]);
  });

  test('long names make no page wider than the window', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const token = game.cloud_token;
    const { groups } = await muster.api.ok('GET', '/cloud/games', { token: muster.administrator_token });
    await muster.api.ok('POST', '/cloud/games', {
      token: muster.administrator_token,
      body: { display_name: 'W'.repeat(24), developer_group_id: groups[0].group_id },
    });
    const versions = `/cloud/games/${game.game_id}/versions`;
    const makeVersion = (display_name: string) =>
      muster.api.ok('POST', versions, { token, body: { display_name, config: {} } });
    const { version_id } = await makeVersion('short');
    await makeVersion('V'.repeat(100));
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/versions/${version_id}`, token);
    const { page } = opened;
    await page.getByLabel('Compared with').waitFor();
    expect(await excessOf(page)).toBe(0);
    await page.setViewportSize(ZOOMED.four_times);
    expect(await excessOf(page)).toBe(0);
    await using of_administrator = await chromium.open('/');
    const home = of_administrator.page;
    await home.setViewportSize(ZOOMED.four_times);
    await home.getByText('W'.repeat(24)).waitFor();
    expect(await excessOf(home)).toBe(0);
    await home.goto(`${muster.config.public_url}/hub/~operator`);
    await home.getByRole('button', { name: /^Drain / }).waitFor();
    expect(await excessOf(home)).toBe(0);
  });
});
