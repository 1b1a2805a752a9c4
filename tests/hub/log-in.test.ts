import { describe, expect, test } from 'bun:test';
import type { WebSocketRoute } from 'playwright-core';
import { makeGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);

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
    await page.getByLabel('Or paste a token of yours').fill(`“${muster.administrator_token}”`);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('it has characters that no token has').waitFor();
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

  test('a link that is opened again goes on with the session that it made, and says that it was used', async () => {
    const link = await chromium.linkTo('/');
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    const used = page.getByRole('alert').getByText('The link to the hub was used or has expired');
    for (const uses of [0, 1]) {
      await page.goto('about:blank');
      await page.goto(link);
      await page.getByRole('heading', { name: 'Games' }).waitFor();
      expect(page.url()).toBe(`${muster.config.public_url}/`);
      if (uses > 0) await used.waitFor();
      expect(await used.count()).toBe(uses);
    }
    expect(problems).toEqual([]);
  });

  test('while the service does not answer, the page waits and keeps its link', async () => {
    const link = await chromium.linkTo('/');
    await using opened = await chromium.openPage();
    const { page } = opened;
    const home = `${muster.config.public_url}/`;
    const away = JSON.stringify({ code: 'DATABASE_UNAVAILABLE' });
    for (const [path, address, status, body] of [
      ['**/hub/session', link, 503, away],
      ['**/hub/session/token', home, 503, away],
      ['**/hub/session/token', home, 500, JSON.stringify({ code: 'ERROR' })],
      // A proxy that logs people in answers with a page of its own.
      ['**/hub/session/token', home, 200, '<!doctype html><title>Log in</title>'],
    ] as const) {
      const is_away = Promise.withResolvers<void>();
      await page.route(path, (route) => {
        is_away.resolve();
        return route.fulfill({ status, body });
      });
      await page.goto(address);
      await is_away.promise;
      await page.getByText('Waiting for the service …').waitFor();
      expect(page.url()).toBe(address);
      await page.unroute(path);
      await page.getByRole('heading', { name: 'Games' }).waitFor();
      expect(page.url()).toBe(`${muster.config.public_url}/`);
    }
  });

  test('at another name of the machine, the page says where the hub is', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    const { port } = new URL(muster.config.public_url);
    await page.goto(`http://localhost:${port}/hub/tanks`);
    const link = page.getByRole('link', { name: muster.config.public_url });
    expect(await link.getAttribute('href')).toBe(`${muster.config.public_url}/hub/tanks`);
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
    expect(problems).toEqual([]);
  });

  test('a link of another bearer replaces the session only if the user says so', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    await using opened = await chromium.open('/', game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('link', { name: 'Test game' }).waitFor();
    const link = await chromium.linkTo('/');
    await page.goto(link);
    await page.getByText('This link logs you in as someone else').waitFor();
    await takePictures(opened, 'other-session');
    await page.getByRole('button', { name: 'Stay who you are' }).click();
    await page.getByRole('link', { name: 'Test game' }).waitFor();
    expect(page.url()).toBe(`${muster.config.public_url}/`);
    // The link was not used.
    await page.goto(link);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('link', { name: 'Operator' }).waitFor();
    expect(page.url()).toBe(`${muster.config.public_url}/`);
    expect(problems).toEqual([]);
  });

  test('a page asks for one token when it is loaded', async () => {
    const requests: string[] = [];
    await using opened = await chromium.openPage();
    const { page } = opened;
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(await chromium.linkTo('/'));
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Operator' }).waitFor();
    expect(requests.filter((url) => url.endsWith('/hub/session/token')).length).toBe(1);
  });

  test('while no token can be had, all that a page watches asks for one at a time, with pauses', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    // The times of the requests: the page itself knows them better than a test on a busy machine.
    await page.addInitScript(() => {
      const times: number[] = [];
      const send = globalThis.fetch;
      Object.assign(globalThis, {
        times,
        fetch: (...sent: Parameters<typeof send>) => {
          if (sent[0] === '/hub/session/token') times.push(performance.now());
          return send(...sent);
        },
      });
    });
    let is_refused = false;
    const sockets: WebSocketRoute[] = [];
    await page.routeWebSocket('**/watch', (socket) => {
      if (is_refused) void socket.close({ code: 4401 });
      else socket.connectToServer();
      sockets.push(socket);
    });
    await page.goto(await chromium.linkTo('/'));
    await page.getByText('Live', { exact: true }).waitFor();
    const readTimes = () => page.evaluate(() => (globalThis as unknown as { times: number[] }).times);
    const before = (await readTimes()).length;
    await page.route('**/hub/session/token', (route) =>
      route.fulfill({ status: 503, body: '{"code":"DATABASE_UNAVAILABLE"}' }),
    );
    is_refused = true;
    for (const socket of sockets) await socket.close({ code: 4401 });
    await waitFor(async () => (await readTimes()).length > before + 4, 'the page to ask for tokens');
    const times = (await readTimes()).slice(before);
    const pauses = times.slice(1).map((time, index) => Math.round(time - (times[index] ?? 0)));
    expect(pauses.filter((pause_ms) => pause_ms < 1_400)).toEqual([]);
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

  test('a game server at the host of the hub gets no cookie', async () => {
    const got: (string | null)[] = [];
    await using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch({ headers }) {
        got.push(headers.get('cookie'));
        return new Response('a game');
      },
    });
    await using opened = await chromium.open('/');
    const { page } = opened;
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    await page.goto(`http://${new URL(muster.config.public_url).hostname}:${server.port}/`);
    expect(got[0]).toBeNull();
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
    // Only where the user did not end it.
    await other.getByRole('alert').getByText('Your session has ended.').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.title()).toBe('Log in · Muster');
    expect(await context.cookies()).toEqual([]);
    await other.reload();
    await other.getByText('Or paste a token of yours').waitFor();
    // Logging in again in one of them begins the session in all.
    await page.goto(await chromium.linkTo('/'));
    for (const tab of [page, other]) await tab.getByRole('heading', { name: 'Games' }).waitFor();
  });

  test('a tab in which another bearer logs in makes all tabs act for that bearer; the same one changes nothing', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const path = `/hub/${its.name_id}/prod/settings`;
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, context, problems } = opened;
    const lobbies = page.getByLabel('Lobbies at once');
    await lobbies.fill('17');
    const other = await context.newPage();
    const inspected = page.waitForResponse('**/cloud/auth/inspect');
    await other.goto(await chromium.linkTo('/', game.cloud_token));
    await other.getByRole('heading', { name: 'Games' }).waitFor();
    await (await inspected).finished();
    expect(await lobbies.inputValue()).toBe('17');
    await other.goto('about:blank');
    await other.goto(await chromium.linkTo('/'));
    await other.getByRole('button', { name: 'Log in' }).click();
    for (const tab of [page, other]) await tab.getByRole('link', { name: 'Operator' }).waitFor();
    expect(await lobbies.inputValue()).not.toBe('17');
    expect(problems).toEqual([]);
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
