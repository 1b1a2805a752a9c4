import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { makeGuest, makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
/** What a page without a right to act may have besides links: filters, and ways to look. */
const LOOKING = ['Log out', 'Follow', 'Copy', 'Go to …', 'Menu'];

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: roles', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  let lobby_id: string;
  let pages: string[];
  beforeAll(async () => {
    game = await makeControlledGame(muster);
    const token = game.cloud_token;
    const { game: read } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token });
    path = `/hub/${read.name_id}/prod`;
    const answer = await find(muster, game);
    lobby_id = answer.body.lobby.lobby_id;
    const servers = `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
    const [server] = (await muster.api.ok('GET', servers, { token })).servers;
    pages = [
      '',
      '/servers',
      '/why',
      '/versions',
      '/settings',
      '/changes',
      '/try',
      `/lobbies/${lobby_id}`,
      `/servers/${server.id}`,
      `/versions/${game.version_id}`,
      `/why/${answer.headers.get('rvt-ray-id')}`,
    ];
  });

  test('neither another tenant nor a guest of the game sees anything of it, on any page', async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    const guest = await makeGuest(muster.api, game);
    for (const token of [other.cloud_token, guest.token]) {
      await using opened = await chromium.open('/', token);
      const { page } = opened;
      await page.getByRole('heading', { name: 'Games' }).waitFor();
      for (const one of pages) {
        await page.goto(`${muster.config.public_url}${path}${one}`);
        await page.getByRole('heading', { name: 'There is no such game' }).waitFor();
        expect(await page.textContent('body')).not.toContain(lobby_id.slice(-12));
      }
    }
  });

  test('a guest of a game sees no game and no action', async () => {
    const guest = await makeGuest(muster.api, game);
    await using opened = await chromium.open('/', guest.token);
    await opened.page.getByText('You have no game yet').waitFor();
    await opened.page.getByText('You are in no group yet. Ask a member of one for an invitation.').waitFor();
    expect(await opened.page.getByText('muster init').count()).toBe(0);
    expect(await opened.page.locator('main').getByRole('button').allTextContents()).toEqual(
      expect.not.arrayContaining(['Kick', 'End', 'Close', 'Deploy']),
    );
  });

  test('a member of a group without a game sees how to create one', async () => {
    const token = muster.administrator_token;
    const { group_id } = await muster.api.ok('POST', '/group/groups', { token, body: { display_name: 'New makers' } });
    const member = await makeMember(muster, { ...game, group_id });
    await using opened = await chromium.open('/', member.token);
    await opened.page.getByText('muster init && muster deploy').waitFor();
    await opened.page.getByText(`muster login ${muster.config.public_url} --token -`).waitFor();
  });

  test('a page offers actions only to a bearer who may act: without an answer about the bearer there is none', async () => {
    await using opened = await chromium.open('/', game.cloud_token);
    const { page } = opened;
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    await page.route('**/cloud/auth/inspect', (route) => route.fulfill({ status: 503, body: '{}' }));
    const shown = new Map<string, string[]>();
    for (const one of pages) {
      await page.goto(`${muster.config.public_url}${path}${one}`);
      if (one === '/try') await page.getByText('Loading …').waitFor();
      else await page.locator('main h1').first().waitFor();
      const buttons = await page.locator('main').getByRole('button').allTextContents();
      const acting = buttons.filter((text) => !LOOKING.includes(text) && !/^(Download|Ask the service)/.test(text));
      if (acting.length > 0) shown.set(one, acting);
    }
    expect([...shown]).toEqual([]);
  });

  test('a service that fails to say what the bearer may do is asked again', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByRole('button', { name: 'New lobby' }).waitFor();
    const has_failed = Promise.withResolvers<void>();
    await page.route('**/cloud/auth/inspect', (route) => {
      has_failed.resolve();
      return route.fulfill({ status: 500, body: '{"code":"ERROR"}' });
    });
    await page.reload();
    await has_failed.promise;
    await page.unroute('**/cloud/auth/inspect');
    await page.getByRole('button', { name: 'New lobby' }).waitFor();
  });

  test('a player can be kicked by those who may, after a question', async () => {
    await seatOf(find(muster, game));
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page, problems } = opened;
    const players = page.getByRole('region', { name: 'Players' }).locator('tbody tr');
    await players.nth(1).waitFor();
    await players.first().getByRole('button', { name: 'Kick' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Kick' }).click();
    await page.getByText('was kicked.').waitFor();
    await players.nth(1).waitFor({ state: 'detached' });
    expect(await players.count()).toBe(1);
    await page.goto(`${muster.config.public_url}${path}/changes`);
    await page.getByText('kickPlayer').or(page.getByText(/kick/i)).first().waitFor();
    expect(problems).toEqual([]);
  });
});
