import { beforeAll, describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { insertMinutes } from '../../src/features/counters/store.ts';
import { makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { makeMember } from '../support/people.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService({ MUSTER_LIMITS_SCALE: '1' });
const chromium = shareChromium(muster);
const MINUTE_MS = 60_000;
/** More than any limit allows. */
const REQUESTS_MAX = 5_000;
/** Sets the clock of a page forward. */
const forward = (page: Page, ms: number) =>
  page.evaluate((by_ms) => {
    const realNow = Date.now;
    Date.now = () => realNow() + by_ms;
  }, ms);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: what needs attention', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  beforeAll(async () => {
    game = await makeControlledGame(muster);
  });
  const count = (minutes_ago: number, refused: Record<string, number>) =>
    insertMinutes(muster.database, [
      {
        namespace_id: game.namespace_id,
        counted_by: crypto.randomUUID(),
        players: 0,
        lobbies: 0,
        refused,
        start_ts: new Date((Math.floor(Date.now() / MINUTE_MS) - minutes_ago) * MINUTE_MS),
        seated: { find: 0, join: 0, create: 0 },
        find_times: {},
      },
    ]);

  test('members see the problems of their games as they happen, and an empty list without any', async () => {
    const member = await makeMember(muster, game);
    // Players are refused for these reasons in every game, and an older problem is over.
    await count(5, { MATCHMAKER_LOBBY_FULL: 7 });
    await count(90, { MATCHMAKER_QUEUE_FULL: 7 });
    await using opened = await chromium.open('/', member.token);
    const { page, problems } = opened;
    await page.getByRole('link', { name: 'Test game' }).waitFor();
    const attention = page.getByRole('region', { name: 'Attention' });
    expect(await attention.count()).toBe(0);
    await count(4, { MATCHMAKER_VERIFICATION_REQUEST_FAILED: 2 });
    await count(3, { MATCHMAKER_VERIFICATION_REQUEST_FAILED: 1, CAPTCHA_CAPTCHA_UNAVAILABLE: 1 });
    await attention
      .getByText('3 requests were refused within the last hour, because the verification server did not')
      .waitFor();
    await attention
      .getByText('1 request was refused within the last hour, because the captcha provider did not')
      .waitFor();
    expect(await attention.getByRole('listitem').count()).toBe(2);
    await takePictures(opened, 'attention');
    await attention.getByRole('link', { name: 'Why' }).first().click();
    await page.waitForURL(/\/prod\/why\?code=MATCHMAKER_VERIFICATION_REQUEST_FAILED$/);
    // After an hour without requests, nothing is left, although no new answer comes.
    await page.goBack();
    await attention.getByText('3 requests were refused within the last hour').waitFor();
    await forward(page, 60 * MINUTE_MS);
    await attention.waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  });

  test('servers that crash are counted as they do, with how they ended in words, and a link to the last one', async () => {
    const crashing = await makeControlledGame(muster);
    const servers = serversOf(muster, crashing);
    await using opened = await chromium.open('/', crashing.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('link', { name: 'Test game' }).waitFor();
    const attention = page.getByRole('region', { name: 'Attention' });
    expect(await attention.count()).toBe(0);
    const first = await servers.run('exit 3');
    await attention
      .getByText('Test game, prod: 1 crash within the last hour. The server ended with exit code 3.')
      .waitFor();
    await servers.run('kill -SEGV $$');
    await attention.getByText('1 crash within the last hour. The server was ended by the signal SIGSEGV (').waitFor();
    await servers.run('exit 3');
    await attention.getByText('2 crashes within the last hour. The server ended with exit code 3.').waitFor();
    await takePictures(opened, 'attention-crashes');
    await attention.getByRole('link', { name: 'Server' }).first().click();
    await page.getByText('The server ended with exit code 3.').waitFor();
    expect(page.url()).not.toContain(first);
    expect(problems).toEqual([]);
  });

  test('administrators see the refusal if the service refuses to say whether it is ready', async () => {
    const message = 'The limit of 5 requests of this kind is exceeded. Try again in 60 s.';
    await using opened = await chromium.open('/');
    const { page } = opened;
    const body = JSON.stringify({ code: 'API_RATE_LIMIT', message });
    await page.route('**/health/ready', (route) => route.fulfill({ status: 429, body }));
    await page.reload();
    await page.getByRole('region', { name: 'Attention' }).getByText(message, { exact: true }).waitFor();
  });

  test('administrators see the limits that refused requests', async () => {
    for (let requests = 0; requests < REQUESTS_MAX; requests += 1) {
      const { status } = await muster.api.get('/cloud/devices/links?device_link_token=nonsense');
      if (status === 429) break;
    }
    const { refused } = await muster.api.ok('GET', '/health/ready');
    const [{ limit, count }] = refused;
    await using opened = await chromium.open('/');
    const attention = opened.page.getByRole('region', { name: 'Attention' });
    const message = `Rate limits refused requests within the last hour: ${count} by the limit "${limit}"`;
    await attention.getByText(message).waitFor();
    expect(opened.problems).toEqual([]);
  });
});
