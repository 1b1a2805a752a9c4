import { beforeAll, describe, expect, test } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { listServers } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: the place of the keyboard', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { source: ROOM_SOURCE });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });
  const focusOn = (page: Page, place: Locator) => place.and(page.locator(':focus')).waitFor();
  const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { name });
  const endLobby = (lobby_id: string) =>
    muster.api.ok('DELETE', `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`, { token: game.cloud_token });

  test('is the next row after a row that is removed, and the heading of the page after the last one', async () => {
    const shares = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/shares`;
    for (const display_name of ['one', 'two', 'three']) {
      await muster.api.ok('POST', shares, { token: game.cloud_token, body: { display_name } });
    }
    await using opened = await chromium.open(`${path}/settings`, game.cloud_token);
    const { page, problems } = opened;
    const rows = page.getByRole('region', { name: 'Share links' }).getByRole('listitem');
    await rows.nth(2).waitFor();
    const [first, second, last] = await rows.locator('span:first-child').allTextContents();
    const row = (name: string | undefined) => rows.filter({ hasText: name ?? '' });
    await row(first).getByRole('button', { name: 'Revoke' }).press('Enter');
    await focusOn(page, row(second));
    await row(last).getByRole('button', { name: 'Revoke' }).press('Enter');
    await focusOn(page, row(second));
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await focusOn(page, heading(page, 'Settings of Production'));
    expect(problems).toEqual([]);
  });

  test('is the next row after a question whose row is removed', async () => {
    await using opened = await chromium.open(`${path}/settings`, game.cloud_token);
    const { page } = opened;
    const site = page.getByRole('region', { name: 'Site' });
    const users = site.getByRole('list', { name: 'Users of the site' });
    for (const name of ['ana', 'ben']) {
      await site.getByLabel('User', { exact: true }).fill(name);
      await site.getByLabel('Password', { exact: true }).fill('a secret');
      await site.getByLabel('Password', { exact: true }).press('Enter');
      await users.getByText(name).waitFor();
    }
    await users.getByRole('button', { name: 'Remove' }).first().press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
    await focusOn(page, users.getByRole('listitem').filter({ hasText: 'ben' }));
    await users.getByRole('button', { name: 'Remove' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
    await focusOn(page, heading(page, 'Site'));
  });

  test('is the heading of the page after the last action, and after a message that is closed', async () => {
    await seatOf(find(muster, game));
    const [server] = await listServers(muster, game);
    await using opened = await chromium.open(`${path}/servers/${server.id}`, game.cloud_token);
    const { page } = opened;
    const end = page.getByRole('button', { name: 'End', exact: true });
    await end.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).press('Enter');
    await page.getByText('ended', { exact: true }).first().waitFor();
    await focusOn(page, heading(page, /^Server/));
    await page.getByRole('link', { name: 'Settings' }).press('Enter');
    await page.getByRole('button', { name: 'Save limits' }).press('Enter');
    await page.getByText('The limits are set.').waitFor();
    await focusOn(page, page.getByRole('button', { name: 'Save limits' }));
    await page.getByRole('status').getByRole('button', { name: 'Close' }).press('Enter');
    await focusOn(page, heading(page, 'Settings of Production'));
  });

  test('is the button that replaces the one that was pressed', async () => {
    await using opened = await chromium.open(`${path}/try`, game.cloud_token);
    const { page } = opened;
    await page.getByRole('button', { name: 'Start' }).press('Enter');
    await focusOn(page, page.getByRole('button', { name: 'Stop' }));
    await page.keyboard.press('Enter');
    await focusOn(page, page.getByRole('button', { name: 'Start' }));
  });

  test('is the heading of the page to which a link led', async () => {
    const { lobby_id } = await seatOf(find(muster, game));
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByRole('link', { name: lobby_id.slice(-12) }).press('Enter');
    await focusOn(page, heading(page, /^Lobby/));
    await endLobby(lobby_id);
  });

  test('is nowhere after a click beside all controls', async () => {
    const { lobby_id } = await seatOf(find(muster, game));
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    const link = page.getByRole('link', { name: lobby_id.slice(-12) });
    await link.focus();
    await heading(page, 'Production').click();
    await endLobby(lobby_id);
    await link.waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('BODY');
  });
});
