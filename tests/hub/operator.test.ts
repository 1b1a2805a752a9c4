import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { Route } from 'playwright-core';
import { insertMinutes } from '../../src/features/counters/store.ts';
import { makeGame } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { makeFullGame, queueUp } from '../support/lobbies/queue.ts';
import { makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const MINUTE_MS = 60_000;

/** Renames a table, so that the work on it fails, until the end of the test. */
async function breakTable(name: string): Promise<AsyncDisposable> {
  const { queries } = muster.database;
  await queries.execute(sql.raw(`alter table ${name} rename to lost_table`));
  return {
    async [Symbol.asyncDispose]() {
      await queries.execute(sql.raw(`alter table lost_table rename to ${name}`));
    },
  };
}

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: operating', () => {
  beforeAll(async () => {
    const { namespace_id } = await makeGame(muster.api, muster.administrator_token);
    const this_minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    const minutes = [-2, -1, 0, 1].map((minute) => ({
      namespace_id,
      start_ts: new Date(this_minute + minute * MINUTE_MS),
      counted_by: crypto.randomUUID(),
      players: 0,
      lobbies: 0,
      seated: { find: 3, join: 0, create: 0 },
      refused: {},
      find_times: {},
    }));
    await insertMinutes(muster.database, minutes);
  });

  test('an administrator sees machines, drains one and ends the drain; the changes are listed', async () => {
    await using opened = await chromium.open('/');
    const { page, problems } = opened;
    await page.getByRole('region', { name: 'Attention' }).waitFor();
    await takePictures(opened, 'home-administrator');
    await page.getByRole('link', { name: 'Operator' }).click();
    const machines = page.getByRole('region', { name: 'Machines' });
    await machines.getByText('up', { exact: true }).waitFor();
    await machines.getByRole('button', { name: 'Drain' }).click();
    await page.getByRole('dialog').getByLabel('Minutes').fill('5');
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
    await machines.getByText(/^(draining|drained)$/).waitFor();
    await machines.getByRole('button', { name: 'End drain' }).click();
    await machines.getByRole('button', { name: /^Drain / }).waitFor();
    await page.getByRole('link', { name: 'Changes' }).click();
    await page.getByRole('region', { name: 'Changes' }).getByText('setMachineDrain').first().waitFor();
    await takePictures(opened, 'operator-changes');
    expect(problems).toEqual([]);
  });

  test('an older answer that comes late does not replace a newer one', async () => {
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    const older = Promise.withResolvers<Route>();
    // The second read is that of the timer.
    let reads = 0;
    await page.route('**/machines', (route) => {
      reads += 1;
      return reads === 2 ? older.resolve(route) : route.continue();
    });
    await page.goto(await chromium.linkTo('/hub/~operator'));
    const machines = page.getByRole('region', { name: 'Machines' });
    const route = await older.promise;
    const response = await route.fetch();
    await machines.getByRole('button', { name: 'Drain' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
    await machines.getByRole('button', { name: 'End drain' }).waitFor();
    // What the page shows at any time: a later read may correct it.
    await page.evaluate(() => {
      const shown: string[] = [];
      Object.assign(globalThis, { shown });
      new MutationObserver(() => {
        for (const button of document.querySelectorAll('td button')) shown.push(button.textContent ?? '');
      }).observe(document, { subtree: true, childList: true, characterData: true });
    });
    const answered = page.waitForEvent('requestfinished', (request) => request === route.request());
    await route.fulfill({ response });
    await answered;
    // The timer reads again after that answer.
    const reads_before = reads;
    await waitFor(() => reads > reads_before, 'the next read');
    expect(await page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown)).not.toContain('Drain');
    await machines.getByRole('button', { name: 'End drain' }).click();
    await machines.getByRole('button', { name: /^Drain / }).waitFor();
    expect(problems).toEqual([]);
  });

  test('an administrator sees warnings with what to do, limits, the queue and the last hour', async () => {
    const game = await makeFullGame(muster);
    const waiter = await queueUp(muster, game);
    await muster.api.ok('GET', '/cloud/service', { token: muster.administrator_token });
    await using opened = await chromium.open('/hub/~operator');
    const { page, problems } = opened;
    const queue = page.getByRole('region', { name: 'Queue' });
    await queue.getByRole('row', { name: /^test-game\S* prod 1 1 \d+ s$/ }).waitFor();
    waiter.abort();
    await queue.getByText('No find waits for its turn.').waitFor();
    const limits = page.getByRole('region', { name: 'Limits' });
    const { sockets_max } = muster.config.sockets;
    // The page itself has one.
    const its_socket = new RegExp(`^sockets\\s*1 of ${sockets_max.toLocaleString('en-US')}$`);
    await limits.getByRole('listitem').filter({ hasText: its_socket }).waitFor();
    expect(await limits.getByRole('meter').count()).toBeGreaterThan(5);
    const hour = page.getByRole('region', { name: 'The last hour' });
    await hour.getByRole('img', { name: /^memory: \d+ MB now, \d+ MB at most$/ }).waitFor();
    // Seats are counted once a minute is over, so the chart ends with the last one that is stored.
    await hour.getByRole('img', { name: /^requests that got a seat, a minute: [1-9]\d* last, / }).waitFor();
    expect(await hour.getByRole('img').count()).toBe(8);
    await page.getByText('muster doctor').waitFor();
    await takePictures(opened, 'operator', { is_whole: true });
    expect(problems).toEqual([]);
  });

  test('an administrator sees the database, the background work with its failures, and the log', async () => {
    await using opened = await chromium.open('/hub/~operator/database');
    const { page, problems } = opened;
    const database = page.getByRole('region', { name: 'Database' });
    await database.getByText('primary, takes writes').waitFor();
    await page.getByRole('region', { name: 'Largest tables' }).getByRole('row').nth(10).waitFor();
    await page.getByRole('region', { name: 'Programs' }).getByRole('cell', { name: 'muster' }).first().waitFor();
    await takePictures(opened, 'operator-database', { is_whole: true });

    await page.getByRole('link', { name: 'Background work' }).click();
    await page.getByRole('cell', { name: 'process-samples' }).waitFor();
    await using _restored = await breakTable('queued_finds');
    const failing = page.getByRole('row').nth(1);
    await failing.getByText(/^queue failed ([3-9]|\d\d) ×$/).waitFor();
    await failing.getByText('ago: relation "queued_finds" does not exist').waitFor();
    await takePictures(opened, 'operator-work', { is_whole: true });
    await page.getByRole('link', { name: 'Overview' }).click();
    const attention = page.getByRole('region', { name: 'Attention' });
    await attention.getByText('background work fails again and again: queue.').waitFor();
    await attention.getByText('Look for loop_failed in the log of the service').waitFor();

    await page.getByRole('link', { name: 'Log', exact: true }).click();
    const log = page.getByRole('log');
    await log.getByText('lobby_created').first().waitFor();
    await log.getByText('cause: relation "queued_finds" does not exist').first().waitFor();
    await page.getByRole('combobox', { name: 'Level' }).selectOption('error');
    await waitFor(async () => (await log.getByText('lobby_created').count()) === 0, 'only errors to be shown');
    expect(new URL(page.url()).search).toBe('?level=error');
    await page.getByRole('combobox', { name: 'Level' }).selectOption('');
    await log.getByText('lobby_created').first().waitFor();
    await takePictures(opened, 'operator-log');
    expect(problems).toEqual([]);
  });

  test('a member sees neither machines nor what the service needs', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const member = await makeMember(muster, game);
    await using opened = await chromium.open('/', member.token);
    const { page } = opened;
    await page.getByRole('link', { name: 'Test game' }).waitFor();
    expect(await page.getByRole('link', { name: 'Operator' }).count()).toBe(0);
    expect(await page.getByRole('region', { name: 'Attention' }).count()).toBe(0);
    await page.goto(`${muster.config.public_url}/hub/~operator`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await page.goto(`${muster.config.public_url}/hub/~operator/database`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  });

  test('a game shows lobbies that failed, and who changed what', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
    const { servers } = await muster.api.ok('GET', `${environment}/servers`, { token: game.cloud_token });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('link', { name: 'Production' }).waitFor();
    await muster.api.ok('DELETE', `${environment}/servers/${servers[0].id}`, { token: game.cloud_token });
    await page.getByRole('link', { name: 'The last one' }).click();
    await page.getByRole('heading', { name: lobby_id.slice(-12) }).waitFor();
    await page.getByRole('link', { name: 'Changes' }).click();
    await page.getByText('destroyServer').waitFor();
    await waitFor(async () => (await page.locator('tbody tr').count()) > 2, 'the changes');
    await takePictures(opened, 'changes');
    expect(problems).toEqual([]);
  });
});
