import { beforeAll, describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { makeGame, type TestGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const FAILED = { status: 500, body: '{"code":"ERROR","message":"It cannot be read."}' };

/** Lets reads of a path fail until the function that it returns is called. */
async function failReads(page: Page, path: string): Promise<() => void> {
  let is_failing = true;
  await page.route(path, (route) =>
    is_failing && route.request().method() === 'GET' ? route.fulfill(FAILED) : route.fallback(),
  );
  return () => {
    is_failing = false;
  };
}

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: after a read that fails', () => {
  let game: TestGame;
  let path: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  test('the settings keep what is typed, say what failed, and read again', async () => {
    await using opened = await chromium.open(`${path}/settings`, game.cloud_token);
    const { page, problems } = opened;
    const data = page.getByLabel('verification_data as JSON');
    await data.fill('{"ticket": 1}');
    await page.getByLabel('Domain', { exact: true }).fill('play.example.com');
    await page.getByLabel('Lobbies at once').waitFor();
    const succeed = await failReads(page, `**/namespaces/${game.namespace_id}`);
    // The form itself reads the limits before it changes them.
    await page.getByLabel('Let pages of this site').click();
    const failure = page.getByRole('alert').getByText('It cannot be read.');
    await failure.waitFor();
    expect(await data.inputValue()).toBe('{"ticket": 1}');
    expect(await page.getByLabel('Domain', { exact: true }).inputValue()).toBe('play.example.com');
    succeed();
    await failure.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Domain', { exact: true }).inputValue()).toBe('play.example.com');
    expect(problems).toEqual([]);
  });

  test('a question about what is read again and again stays open', async () => {
    await using opened = await chromium.open('/hub/~operator');
    const { page } = opened;
    await page.getByRole('button', { name: /^Drain / }).click();
    await page.getByLabel('Minutes').fill('7');
    const succeed = await failReads(page, '**/cloud/machines');
    const failure = page.getByRole('region', { name: 'Machines' }).getByText('It cannot be read.');
    await failure.waitFor();
    expect(await page.getByLabel('Minutes').inputValue()).toBe('7');
    succeed();
    await failure.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Minutes').inputValue()).toBe('7');
  });

  test('a version is read again', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    const succeed = await failReads(page, '**/versions/*');
    await page.goto(await chromium.linkTo(`${path}/try`, game.cloud_token));
    await page.getByRole('alert').getByText('It cannot be read.').waitFor();
    succeed();
    await page.getByText('The live version has no game mode yet.').waitFor();
    expect(await page.getByRole('alert').getByText('It cannot be read.').count()).toBe(0);
  });
});
