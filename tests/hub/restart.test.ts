import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { IMMEDIATE_MS } from '../support/wait.ts';

const START_TIMEOUT_MS = 300_000;
const ROW = 'ul[aria-label="Lobbies"] > li';

let home: Home | undefined;
let program: Program | undefined;
function running(): Program {
  if (!program) throw new Error('it runs while tests run');
  return program;
}
const muster = {
  get api() {
    return running().api;
  },
  get administrator_token() {
    return running().administrator_token;
  },
  get config() {
    return { public_url: running().url };
  },
};
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a service that is killed', () => {
  beforeAll(async () => {
    home = await makeHome({}, { has_prepared_database: true });
    program = await home.start();
  }, START_TIMEOUT_MS);
  afterAll(() => home?.[Symbol.asyncDispose](), START_TIMEOUT_MS);

  test('while a page is open is reported there at once; once it runs again, the page continues and repeats nothing', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const path = `/hub/${its.name_id}/prod`;
    await using list = await chromium.open(path, game.cloud_token);
    await using one = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const pages = [list.page, one.page];
    const seats = list.page.locator(ROW).getByRole('img');
    await list.page.locator(ROW).getByRole('img', { name: '0 connected, 1 reserved' }).waitFor();
    const lines = one.page.getByRole('log').locator('.line');
    await lines.first().waitFor();
    for (const page of pages) await page.getByText('Live', { exact: true }).waitFor();
    const loads: string[] = [];
    for (const page of pages) page.on('load', () => loads.push(page.url()));

    await running().stop('SIGKILL');
    // Only time tells this from a ping without an answer, which a page would notice after 35 s.
    for (const page of pages) await page.getByText('Connecting …').waitFor({ timeout: IMMEDIATE_MS });
    // What was known stays on the page.
    expect(await seats.count()).toBe(1);
    const lines_before = await lines.allTextContents();

    program = await home?.start();
    for (const page of pages) await page.getByText('Live', { exact: true }).waitFor();
    await seatOf(find(muster, game));
    await list.page.locator(ROW).getByRole('img', { name: '0 connected, 2 reserved' }).waitFor();
    await one.page.getByRole('img', { name: '0 connected, 2 reserved' }).waitFor();
    expect(await list.page.locator(ROW).count()).toBe(1);
    expect((await lines.allTextContents()).slice(0, lines_before.length)).toEqual(lines_before);
    expect(new Set(await lines.allTextContents()).size).toBe(await lines.count());
    expect(loads).toEqual([]);
  });

  test('while pages that only read are open: they keep what they show, say why an action failed, and continue', async () => {
    const game = await makeControlledGame(muster);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const path = `/hub/${its.name_id}/prod`;
    await using operator = await chromium.open('/hub/~operator');
    await using settings = await chromium.open(`${path}/settings`);
    await using list = await chromium.open(path);
    const machines = operator.page.getByRole('region', { name: 'Machines' });
    const is_ready = operator.page.getByText('The service is ready.');
    const checkbox = settings.page.getByLabel('Ask visitors for a user and password');
    const waitForAlert = (page: Page) => page.getByRole('alert').getByText('The service does not answer.').waitFor();
    const pages = [operator.page, settings.page, list.page];
    await machines.getByText('up', { exact: true }).waitFor();
    await is_ready.waitFor();
    await checkbox.waitFor();
    await list.page.getByRole('heading', { name: 'Production' }).waitFor();
    for (const page of pages) await page.getByText('Live', { exact: true }).waitFor();

    await running().stop('SIGKILL');
    for (const page of pages) await page.getByText('Connecting …').waitFor();
    await is_ready.waitFor({ state: 'detached' });
    // A machine that runs has a beat, and the page reads it, every five seconds.
    await machines.getByRole('cell', { name: /^(1[2-9]|[2-9]\d) s$/ }).waitFor();
    expect(await machines.getByText('up', { exact: true }).count()).toBe(1);
    await checkbox.click();
    await waitForAlert(settings.page);
    expect(await checkbox.isChecked()).toBe(false);
    await list.page.getByRole('button', { name: 'Log out' }).click();
    await waitForAlert(list.page);
    await list.page.getByRole('link', { name: 'Settings' }).click();
    await list.page.getByText('Loading …').waitFor();

    program = await home?.start();
    for (const page of pages) await page.getByText('Live', { exact: true }).waitFor();
    await is_ready.waitFor();
    await list.page.getByRole('heading', { name: 'Settings of Production' }).waitFor();
    for (const { problems } of [operator, settings, list]) {
      expect(problems.filter((problem) => problem.startsWith('error:'))).toEqual([]);
    }
  });
});
