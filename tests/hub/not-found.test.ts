import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: an address that leads to nothing', () => {
  let game: TestGame;
  let path: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  const missing_id = crypto.randomUUID();
  const places: [address: () => string, what: string][] = [
    [() => '/hub/games/abc', 'game: games'],
    [() => '/hub/~groups/abc', 'group'],
    [() => `/hub/~groups/${missing_id}`, 'group'],
    [() => '/hub/~people/abc', 'person'],
    [() => `/hub/~people/${missing_id}`, 'person'],
    [() => `${path}/lobbies/abc`, 'lobby'],
    [() => `${path}/lobbies/${missing_id}`, 'lobby'],
    [() => `${path}/servers/abc`, 'server'],
    [() => `${path}/servers/${missing_id}`, 'server'],
    [() => `${path}/versions/abc`, 'version'],
    [() => `${path}/why/abc`, 'request'],
  ];

  test('says what does not exist, and leads back', async () => {
    await using opened = await chromium.open('/');
    const { page, problems } = opened;
    for (const [address, what] of places) {
      await page.goto(muster.config.public_url + address());
      await page.getByRole('heading', { name: `There is no such ${what}`, exact: true }).waitFor();
      await page.getByText('Check that it is complete.').waitFor();
      expect(await page.getByText('route').count()).toBe(0);
      await page.getByRole('link', { name: 'All games' }).click();
      await page.getByRole('heading', { name: 'Games', exact: true }).waitFor();
    }
    await page.goBack();
    await page.getByRole('heading', { name: 'There is no such request' }).waitFor();
    await takePictures(opened, 'not-found');
    expect(problems).toEqual([]);
  });

  test('names its page in the title, also below the page of the operator and without rights to that', async () => {
    await using opened = await chromium.open('/hub/~operator/abc');
    const { page } = opened;
    await page.getByRole('heading', { name: "There is no such part of the operator's page: abc" }).waitFor();
    await page.waitForFunction(() => document.title === 'Not found · Muster');
    await using as_tool = await chromium.open('/hub/~operator', game.cloud_token);
    await as_tool.page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  });

  test('of a share link says that the link is not complete', async () => {
    const shares = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/shares`;
    const { url } = await muster.api.ok('POST', shares, { token: game.cloud_token, body: {} });
    const { origin, pathname, hash } = new URL(url);
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    await page.goto(`${origin}${pathname}/lobbies/abc${hash}`);
    await page.getByRole('alert').getByText('Check that the link is complete').waitFor();
    expect(problems).toEqual([]);
  });
});
