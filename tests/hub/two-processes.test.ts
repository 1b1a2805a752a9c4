import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const OPEN_TIMEOUT_MS = 300_000;
const FINDS = 10;
/** Only time tells a notification from the check for lost ones, which happens every 5 s. */
const NOTIFIED_WITHIN_MS = 2_000;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: two processes', () => {
  let other: TestService;
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    // It starts no server of the game: it has no file of the build.
    other = await openTestService({ MUSTER_DATACENTER: 'elsewhere' }, { database_of: muster });
    game = await makeControlledGame(muster, { game_modes: { default: { max_players: 32 } } });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${its.name_id}/prod`;
  }, OPEN_TIMEOUT_MS);
  afterAll(() => other[Symbol.asyncDispose](), OPEN_TIMEOUT_MS);

  test('a find in another process is a seat on the page soon, without a request of the page', async () => {
    await seatOf(find(muster, game, { regions: ['local'] }));
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('img', { name: '0 connected, 1 reserved' }).waitFor();
    // The page may still be loading the version and its graphs.
    await page.waitForFunction(() =>
      performance.getEntriesByType('resource').some(({ name }) => /versions/.test(name)),
    );
    await page.waitForLoadState('networkidle');
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    const took_ms: number[] = [];
    for (let seats = 2; seats < 2 + FINDS; seats += 1) {
      const shown = page.evaluate(
        (label) =>
          new Promise<number>((resolve) => {
            const check = () => {
              if (document.querySelector(`[aria-label^="${label}"]`)) resolve(Date.now());
              else requestAnimationFrame(check);
            };
            check();
          }),
        `0 connected, ${seats} reserved`,
      );
      await seatOf(find(other, game, { regions: ['local'] }));
      const answered_at = Date.now();
      took_ms.push((await shown) - answered_at);
    }
    console.log(`a find in another process was a seat after ${took_ms.join(', ')} ms`);
    // The median, because other tests run on the same processors.
    expect(took_ms.toSorted((one, other) => one - other)[FINDS / 2]).toBeLessThan(NOTIFIED_WITHIN_MS);
    expect(requests).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('the receipt of another process is shown as soon as it is written', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByText('Production').first().waitFor();
    const answer = await find(other, game, { game_modes: ['nothing'] });
    expect(outcomeOf(answer)).not.toBe('200');
    await page.goto(`${muster.config.public_url}${path}/why/${answer.headers.get('rvt-ray-id')}`);
    await page.getByText('find in nothing').waitFor();
    expect(await page.getByText('Receipts are kept for an hour').count()).toBe(0);
  });
});
