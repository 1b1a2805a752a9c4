import { describe, expect, test } from 'bun:test';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const REQUESTS = 18;
const ROW = 'ul[aria-label="Requests"] > li';
const TOP = 300;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: the place of a page', () => {
  test('is kept for "back" and for a reload, also where the page is read anew; a link leads to the top', async () => {
    const game = await makeControlledGame(muster, { game_modes: { duel: { max_players: 1 } }, lobby_count_max: 1 });
    await seatOf(find(muster, game, { game_modes: ['duel'] }));
    for (let count = 0; count < REQUESTS; count += 1) {
      const refused = await find(muster, game, { game_modes: ['duel'] });
      expect(outcomeOf(refused)).toBe('400 MATCHMAKER_TOO_MANY_LOBBIES');
    }
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    await page.setViewportSize({ width: 1280, height: 500 });
    await page.goto(await chromium.linkTo(`/hub/${its.name_id}/prod/why`, game.cloud_token));
    const isAt = (top: number) => page.waitForFunction((wanted) => scrollY === wanted, top);
    await page
      .locator(ROW)
      .nth(REQUESTS - 1)
      .waitFor({ state: 'attached' });
    await page.mouse.move(600, 300);
    await page.mouse.wheel(0, TOP);
    await isAt(TOP);
    await page.waitForFunction((wanted) => history.state?.top === wanted, TOP);
    // A click by the mouse would scroll the link into view.
    await page
      .locator(ROW)
      .getByRole('link')
      .nth(10)
      .evaluate((link: HTMLElement) => link.click());
    await page.getByRole('heading', { name: 'Refused' }).waitFor();
    await isAt(0);
    await page.goBack();
    await isAt(TOP);
    await page.reload();
    await isAt(TOP);
    // What the user does wins over the place of before.
    await page.mouse.wheel(0, -TOP);
    await isAt(0);
    expect(problems).toEqual([]);
  });
});
