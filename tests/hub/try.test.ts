import { beforeAll, describe, expect, test } from 'bun:test';
import { deploy } from '../support/game.ts';
import { makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService({ MUSTER_LIMITS_SCALE: '100' });
const chromium = shareChromium(muster);
/** Seconds on a free machine; other tests may run on the same processors. */
const THOUSAND_BOTS_MS = 170_000;
const BOTS_TIMEOUT_MS = 200_000;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: try it', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, {
      source: ROOM_SOURCE,
      game_modes: { duel: { max_players: 2, taggable: true } },
      lobby_count_max: 3,
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  test('bots play with their game servers, and each refusal links to its page "Why"', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('Bots').fill('8');
    await page.getByLabel('Tags').fill('map=ice');
    await page.getByRole('button', { name: 'Start' }).click();
    const figure = (name: string) => page.locator('.figures > div').filter({ hasText: name }).locator('dd');
    await page.waitForFunction(
      () => Number([...document.querySelectorAll('.figures > div')].at(-1)?.querySelector('dd')?.textContent) >= 3,
    );
    expect(await figure('find, p50').textContent()).toMatch(/^\d+ ms$/);
    const refused = page.getByRole('region', { name: 'Refused' });
    await refused.getByText('MATCHMAKER_TOO_MANY_LOBBIES').waitFor();
    await takePictures(opened, 'try');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Start' }).waitFor();
    await refused.getByRole('link', { name: 'Why' }).click();
    await page.getByText('find in duel at local with map=ice').waitFor();
    expect(problems).toEqual([]);
  });

  test('bots that get no proof of work say why, and wait', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page, context, problems } = opened;
    await context.route('**/lobbies/find', (route) =>
      route.fulfill({ status: 400, body: '{"code":"CAPTCHA_CAPTCHA_REQUIRED","metadata":{"pow":{}}}' }),
    );
    const ray_id = crypto.randomUUID();
    await context.route('**/captcha/challenge', (route) =>
      route.fulfill({
        status: 429,
        headers: { 'retry-after': '600' },
        body: JSON.stringify({ code: 'API_RATE_LIMIT', ray_id }),
      }),
    );
    await page.getByLabel('Bots').fill('2');
    await page.getByRole('button', { name: 'Start' }).click();
    const refused = page.getByRole('region', { name: 'Refused' });
    await refused.getByText('2 × API_RATE_LIMIT').waitFor();
    expect(await refused.getByRole('link', { name: 'Why' }).getAttribute('href')).toBe(`${path}/why/${ray_id}`);
    expect(await refused.getByText('NO_ANSWER').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('bots do not start if the page is left before their token arrives', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page, problems } = opened;
    const released = Promise.withResolvers<void>();
    await page.route('**/tokens/public', async (route) => {
      await released.promise;
      await route.continue();
    });
    const requested = page.waitForRequest('**/tokens/public');
    const answered = page.waitForResponse('**/tokens/public');
    await page.getByRole('button', { name: 'Start' }).click();
    await requested;
    await page.getByRole('link', { name: 'Lobbies', exact: true }).click();
    await page.getByRole('heading', { name: 'Production' }).waitFor();
    released.resolve();
    await (await answered).finished();
    await page.getByRole('link', { name: 'Servers', exact: true }).click();
    await page.getByRole('heading', { name: 'Servers' }).waitFor();
    expect(page.workers()).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('figures go with the page, so that another namespace does not show them', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('seats found').waitFor();
    await page.getByRole('link', { name: 'Lobbies', exact: true }).click();
    await page.getByRole('heading', { name: 'Production' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Start' }).waitFor();
    expect(await page.getByText('seats found').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('bots whose script cannot be loaded are stopped, and the page says why', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page } = opened;
    // After an upgrade, the service has no longer the files of a page that is open.
    await page.context().route('**/hub-files/worker-*', (route) => route.fulfill({ status: 404 }));
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByRole('alert').getByText('A script of this page could not be loaded.').waitFor();
    await page.getByRole('button', { name: 'Start' }).waitFor();
  });

  test('tags are sent only in a game mode that takes them', async () => {
    const mixed = await makeControlledGame(muster, {
      source: ROOM_SOURCE,
      game_modes: { duel: { max_players: 2, taggable: true }, plain: {} },
    });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${mixed.game_id}`, { token: mixed.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/try`, mixed.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('Bots').fill('1');
    await page.getByLabel('Tags').fill('map=ice');
    await page.getByLabel('Game mode').selectOption('plain');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForFunction(
      () => Number([...document.querySelectorAll('.figures > div')].at(-1)?.querySelector('dd')?.textContent) >= 1,
    );
    expect(await page.getByRole('region', { name: 'Refused' }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('bots connect to the first port that takes a WebSocket, and the page says if a game mode has none', async () => {
    // Answers list these ports before the one for WebSockets.
    const others = {
      udp: { port_range: { min: 28_040, max: 28_050 }, protocol: 'udp', proxy: 'none' },
      tcp: { port: 7_777, protocol: 'tcp' },
    };
    const mixed = await makeControlledGame(muster, {
      source: ROOM_SOURCE,
      network_mode: 'host',
      ports: { ...others, game: { port: 80, protocol: 'http', proxy: 'game_guard' } },
    });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${mixed.game_id}`, { token: mixed.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/try`, mixed.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('Bots').fill('2');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForFunction(
      () => Number([...document.querySelectorAll('.figures > div')].at(-1)?.querySelector('dd')?.textContent) >= 2,
    );
    expect(await page.getByText('takes a WebSocket').count()).toBe(0);
    expect(await page.getByRole('region', { name: 'Game servers that did not let a bot in' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Stop' }).click();

    const docker = { image_id: mixed.build_id, network_mode: 'host', ports: others };
    await deploy(muster.api, mixed, { game_modes: { default: {} }, docker });
    await page.getByText('No port of the game mode "default" takes a WebSocket').waitFor();
    await takePictures(opened, 'try-without-port');
    expect(problems).toEqual([]);
  });

  test(
    'a thousand bots get a seat each, and the page answers meanwhile',
    async () => {
      const big = await makeControlledGame(muster, { source: ROOM_SOURCE, game_modes: { duel: { max_players: 250 } } });
      const { game: its } = await muster.api.ok('GET', `/cloud/games/${big.game_id}`, { token: big.cloud_token });
      await using opened = await chromium.open(`/hub/${its.name_id}/prod/try`, big.cloud_token);
      const { page, problems } = opened;
      await page.getByLabel('Bots').fill('1000');
      await page.getByRole('button', { name: 'Start' }).click();
      const figureOf = async (name: string) =>
        Number(await page.locator('.figures > div').filter({ hasText: name }).locator('dd').textContent());
      // Finds wait for their turns in order, so by then each bot had one.
      await waitFor(async () => (await figureOf('seats found')) >= 1_000, 'a thousand seats', THOUSAND_BOTS_MS);
      expect(await figureOf('only seated')).toBeGreaterThan(0);
      expect(await page.getByRole('region', { name: 'Refused' }).count()).toBe(0);
      expect(await page.getByRole('region', { name: 'Game servers that did not let a bot in' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByRole('button', { name: 'Start' }).waitFor();
      expect(problems).toEqual([]);
    },
    BOTS_TIMEOUT_MS,
  );

  test('the page itself can reach no other address', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Start' }).waitFor();
    const reached = await page.evaluate(() =>
      fetch('http://127.0.0.1:1/').then(
        () => 'reached',
        () => 'blocked',
      ),
    );
    expect(reached).toBe('blocked');
    expect(problems.join()).toContain('connect-src');
    const made = await page.evaluate(() => {
      try {
        new Worker('data:text/javascript,1');
        return 'made';
      } catch {
        return 'refused';
      }
    });
    expect(made).toBe('refused');
  });
});
