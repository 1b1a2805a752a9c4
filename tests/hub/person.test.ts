import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { makeGuest } from '../support/people.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: external.profile of a person', () => {
  let game: TestGame;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
  });

  test('leads another person to a page with name, number, avatar and bio, without any action', async () => {
    const [seen, other] = [await makeGuest(muster.api, game), await makeGuest(muster.api, game)];
    const body = { display_name: 'Crab Fan', account_number: 42, bio: 'I like\n<b>crabs</b>.' };
    await muster.api.ok('POST', '/identity/identities/self/profile', { token: seen.token, body });
    const { identity } = await muster.api.ok('GET', `/identity/identities/${seen.identity_id}/profile`, {
      token: other.token,
    });
    const path = identity.external.profile.slice(muster.config.public_url.length);
    await using opened = await chromium.open(path, other.token);
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Crab Fan', exact: true }).waitFor();
    await page.getByText('#42', { exact: true }).waitFor();
    await page.getByText('<b>crabs</b>.').waitFor();
    const avatar = page.locator('main img');
    expect(await avatar.evaluate((picture) => (picture as HTMLImageElement).decode())).toBeUndefined();
    expect(await page.locator('main').getByRole('button').count()).toBe(0);
    await takePictures(opened, 'person');
    expect(problems).toEqual([]);
  });

  test('of a person that does not exist, the page says so', async () => {
    await using opened = await chromium.open(`/hub/~people/${crypto.randomUUID()}`);
    await opened.page.getByRole('heading', { name: 'There is no such person', exact: true }).waitFor();
  });
});
