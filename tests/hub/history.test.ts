import { beforeAll, describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { insertMinutes } from '../../src/features/counters/store.ts';
import { linesOf, PERIODS, refusalsOf } from '../../src/hub/data/counters.ts';
import { deploy } from '../support/game.ts';
import { makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const MINUTE_MS = 60_000;
const STEPS_OF_DAY = 288;
/** One that is wider than a phone. */
const LONG_CODE = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE';
/** Sets the clock of a page forward. */
const forward = (page: Page, ms: number) =>
  page.evaluate((by_ms) => {
    const realNow = Date.now;
    Date.now = () => realNow() + by_ms;
  }, ms);

describe('history: lines', () => {
  const NOON = Date.UTC(2026, 0, 15, 12);
  const nothing = { finds: 0, joins: 0, creates: 0, refused: {} };
  const stepAt = (ms: number, players: number) => ({
    ...nothing,
    start_ts: new Date(ms).toISOString(),
    players,
    lobbies: 1,
  });

  test.each(['hour', 'day', 'week'] as const)(
    'of the last %s are whole, with 0 where nothing happened, and end with what is stored',
    (period) => {
      const step_ms = { hour: MINUTE_MS, day: 5 * MINUTE_MS, week: 60 * MINUTE_MS }[period];
      const steps = [stepAt(NOON - 2 * step_ms, 7), stepAt(NOON, 3)];
      // Its first minute is stored some seconds after its end.
      const now = NOON + MINUTE_MS + 5_000;
      const counted = { step_ms, steps, watch: { index: '' } };
      const { times, players, lobbies } = linesOf(counted, period, now);
      expect(linesOf(counted, period, now + step_ms - 1)).toEqual({ times, players, lobbies });
      expect(linesOf(counted, period, now - 1).times.at(-1)).toBe(NOON - step_ms);
      expect(times).toHaveLength(PERIODS[period] / step_ms);
      expect([times.at(-1), players.slice(-4), lobbies.slice(-4)]).toEqual([NOON, [0, 7, 0, 3], [0, 1, 0, 1]]);
      expect(players.slice(0, -4).every((value) => value === 0)).toBe(true);
      expect(times.slice(1).every((time, place) => time - (times[place] ?? 0) === step_ms)).toBe(true);
    },
  );

  test('refusals are added up by their code, the most frequent first', () => {
    expect(refusalsOf([{ refused: { A: 1, B: 1 } }, { refused: {} }, { refused: { B: 2 } }])).toEqual([
      ['B', 3],
      ['A', 1],
    ]);
  });
});

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: the history of a namespace', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${its.name_id}/prod`;
  });
  const count = (minutes_ago: number, players: number, { namespace_id } = game) =>
    insertMinutes(muster.database, [
      {
        namespace_id,
        counted_by: crypto.randomUUID(),
        players,
        lobbies: 2,
        start_ts: new Date((Math.floor(Date.now() / MINUTE_MS) - minutes_ago) * MINUTE_MS),
        seated: { find: 3, join: 0, create: 0 },
        refused: { MATCHMAKER_TOO_MANY_LOBBIES: 2, [LONG_CODE]: 1 },
        find_times: { 9: 3 },
      },
    ]);

  test('has players over the last hour, day and week, with deploys and refusals, and is pushed', async () => {
    for (const [minutes_ago, players] of [
      [45, 4],
      [30, 9],
      [20, 6],
    ] as const)
      await count(minutes_ago, players);
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    const history = page.getByRole('region', { name: 'History' });
    await history.getByRole('img', { name: /^Players over the last day: 9 at most, 0 at last; deployed: / }).waitFor();
    await history.getByText('9 requests got a seat, 9 did not').waitFor();
    const line = history.locator('polyline').first();
    await line.waitFor();
    const [color, points] = await line.evaluate((one) => [getComputedStyle(one).stroke, one.getAttribute('points')]);
    expect(color).toBe('rgb(79, 70, 229)');
    // A day has 288 steps; the most players, half an hour ago, are the highest point, and those after it are at the bottom.
    const heights = (points ?? '').split(' ').map((point) => Number(point.split(',')[1]));
    expect(heights).toHaveLength(STEPS_OF_DAY);
    const peak = heights.indexOf(Math.min(...heights));
    expect(STEPS_OF_DAY - peak).toBeWithin(6, 9);
    expect(heights.at(-1)).toBe(Math.max(...heights));
    await history.getByText('0', { exact: true }).first().waitFor();
    expect(await history.locator('.chart-mark').count()).toBeGreaterThan(0);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await count(10, 12);
    await history.getByRole('img', { name: 'Players over the last day: 12 at most' }).waitFor();
    expect(requests).toEqual([]);
    await history.getByRole('combobox', { name: 'Players over' }).selectOption('hour');
    await history.getByRole('img', { name: 'Players over the last hour: 12 at most' }).waitFor();
    await history.getByRole('combobox', { name: 'Players over' }).selectOption('week');
    await history.getByRole('img', { name: 'Players over the last week: 12 at most' }).waitFor();
    expect(new URL(page.url()).search).toBe('?over=week');
    await takePictures(opened, 'history');
    await history.getByRole('link', { name: 'MATCHMAKER_TOO_MANY_LOBBIES' }).click();
    await page.waitForURL(/\/why\?code=MATCHMAKER_TOO_MANY_LOBBIES$/);
    expect(problems).toEqual([]);
  });

  test('names the latest of many deploys that follow each other quickly, so that no name is over another', async () => {
    const busy = await makeControlledGame(muster);
    for (let deploys = 0; deploys < 7; deploys += 1) await deploy(muster.api, busy, busy.matchmaker);
    await count(5, 3, busy);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${busy.game_id}`, { token: busy.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod`, busy.cloud_token);
    const marks = opened.page.locator('.chart-mark');
    await marks.nth(7).waitFor({ state: 'attached' });
    expect(await marks.locator('text').count()).toBe(4);
    expect(opened.problems).toEqual([]);
  });

  test('moves on with the time while nothing happens', async () => {
    const quiet = await makeControlledGame(muster);
    await count(2, 7, quiet);
    await count(45, 9, quiet);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${quiet.game_id}`, { token: quiet.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod?over=hour`, quiet.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('img', { name: 'Players over the last hour: 9 at most' }).waitFor();
    await page.getByText('6 requests got a seat, 6 did not').waitFor();
    await forward(page, 30 * MINUTE_MS);
    await page.getByRole('img', { name: 'Players over the last hour: 7 at most' }).waitFor();
    await page.getByText('3 requests got a seat, 3 did not').waitFor();
    expect(problems).toEqual([]);
  });

  test('without any players or deploys says so', async () => {
    const other = await makeControlledGame(muster);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${other.game_id}`, { token: other.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod`, other.cloud_token);
    await opened.page.getByText('0 requests got a seat, 0 did not').waitFor();
    expect(await opened.page.locator('.chart').count()).toBe(0);
    expect(opened.problems).toEqual([]);
  });
});
