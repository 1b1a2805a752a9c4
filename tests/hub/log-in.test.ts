import { describe, expect, test } from 'bun:test';
import { WITHOUT_PAGES } from '../support/browser.ts';
import { makeGame } from '../support/game.ts';
import { shareChromium, takePictures } from '../support/hub-page.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);

test('hub: Chromium is installed where CI requires it', () => {
  if (process.env.MUSTER_TEST_REQUIRED === '1') expect(WITHOUT_PAGES).toBeUndefined();
});

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: logging in', () => {
  test('without a session, the page says how, and a wrong token why not', async () => {
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    const errors: string[] = [];
    page.on('console', (line) => {
      if (line.type() === 'error') errors.push(line.text());
    });
    await page.goto(`${muster.config.public_url}/`);
    await page.getByText(`muster open --url ${muster.config.public_url}`).waitFor();
    expect(errors).toEqual([]);
    await takePictures(opened, 'log-in');
    await page.getByLabel('Or paste a token of yours').fill('nonsense');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('TOKEN_INVALID').waitFor();
    expect(problems).toEqual([]);
  });

  test('a link opens the page logged in, once; its code leaves the address', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const link = await chromium.linkTo('/', game.cloud_token);
    await using first = await chromium.openPage();
    await first.page.goto(link);
    await first.page.getByRole('link', { name: 'Test game' }).waitFor();
    expect(first.page.url()).toBe(`${muster.config.public_url}/`);
    await first.page.reload();
    await first.page.getByRole('link', { name: 'Test game' }).waitFor();
    expect(first.problems).toEqual([]);

    await using second = await chromium.openPage();
    await second.page.goto(link);
    await second.page.getByRole('alert').getByText('The link to the hub was used or has expired').waitFor();
  });

  test('a link that is opened again goes on with the session that it made', async () => {
    const link = await chromium.linkTo('/');
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    for (const _ of ['first', 'again']) {
      await page.goto('about:blank');
      await page.goto(link);
      await page.getByRole('heading', { name: 'Games' }).waitFor();
      expect(page.url()).toBe(`${muster.config.public_url}/`);
    }
    expect(problems).toEqual([]);
  });

  test('a link that is pasted over the address of an open page logs in', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    await page.goto(`${muster.config.public_url}/`);
    await page.getByText('Or paste a token of yours').waitFor();
    await page.goto(await chromium.linkTo('/', game.cloud_token));
    await page.getByRole('link', { name: 'Test game' }).waitFor();
    expect(page.url()).toBe(`${muster.config.public_url}/`);
    // One of another bearer replaces the session.
    await page.goto(await chromium.linkTo('/'));
    await page.getByRole('link', { name: 'Operator' }).waitFor();
    expect(problems).toEqual([]);
  });

  test('a pasted token logs in, and pages can read neither the cookie nor the token', async () => {
    await using opened = await chromium.openPage();
    const { page, context } = opened;
    await page.goto(`${muster.config.public_url}/`);
    await page.getByLabel('Or paste a token of yours').fill(muster.administrator_token);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    const cookies = await context.cookies();
    expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([
      { httpOnly: true, sameSite: 'Strict' },
    ]);
    const readable = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
    expect(readable).toEqual(['', 0, 0]);
  });

  test('a token that is submitted twice logs in once', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    const requests: string[] = [];
    const released = Promise.withResolvers<void>();
    await page.route('**/hub/links', async (route) => {
      requests.push(route.request().method());
      await released.promise;
      await route.continue();
    });
    await page.goto(`${muster.config.public_url}/`);
    const input = page.getByLabel('Or paste a token of yours');
    await input.fill(muster.administrator_token);
    await input.press('Enter');
    await input.press('Enter');
    released.resolve();
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    expect(requests).toEqual(['POST']);
  });

  test('logging out ends the session in all tabs of the browser', async () => {
    await using opened = await chromium.open('/');
    const { page, context } = opened;
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    const other = await context.newPage();
    await other.goto(`${muster.config.public_url}/`);
    await other.getByRole('heading', { name: 'Games' }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    for (const tab of [page, other]) await tab.getByText('Or paste a token of yours').waitFor();
    expect(await context.cookies()).toEqual([]);
    await other.reload();
    await other.getByText('Or paste a token of yours').waitFor();
    // Logging in again in one of them begins the session in all.
    await page.goto(await chromium.linkTo('/'));
    for (const tab of [page, other]) await tab.getByRole('heading', { name: 'Games' }).waitFor();
  });

  test('a session that ends while a page is open shows the form, which says so', async () => {
    const { game_id, cloud_token } = await makeGame(muster.api, muster.administrator_token);
    await using opened = await chromium.open('/', cloud_token);
    await opened.page.getByRole('link', { name: 'Test game' }).waitFor();
    const token = muster.administrator_token;
    await muster.api.ok('POST', `/cloud/games/${game_id}/tokens/revoke`, { token, body: {} });
    await opened.page.getByRole('alert').getByText('Your session has ended.').waitFor();
    await opened.page.getByText('Or paste a token of yours').waitFor();
  });

  test('home lists the games live, and shows names as text', async () => {
    await using opened = await chromium.open('/');
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    const requests: string[] = [];
    // The state of machines cannot be watched, so administrators' pages ask for it.
    page.on('request', (request) => {
      if (!/\/(machines|health\/ready)$/.test(request.url())) requests.push(request.url());
    });
    const token = muster.administrator_token;
    const { groups } = await muster.api.ok('GET', '/cloud/games', { token });
    const display_name = '<script>1</script>';
    const body = { display_name, developer_group_id: groups[0].group_id };
    await muster.api.ok('POST', '/cloud/games', { token, body });
    await waitFor(async () => (await page.getByText(display_name).count()) === 1, 'the new game to be on the page');
    expect(requests).toEqual([]);
    await takePictures(opened, 'home');
    expect(problems).toEqual([]);
  });
});
