import { describe, expect, test } from 'bun:test';
import { listServers } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const DAY_MS = 24 * 3_600_000;
/** The lower case of its first letters is longer than they are. */
const LINE = 'İİİ needle';
const SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
Bun.serve({ port: Number(PORT_game), fetch: () => new Response('ok') });
console.log(${JSON.stringify(LINE)});
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a lobby of an earlier day', () => {
  test('has the dates of its life and log; what is of today has times only', async () => {
    const game = await makeControlledGame(muster, { source: SOURCE });
    const { lobby_id } = await seatOf(find(muster, game));
    const [server] = await listServers(muster, game);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const path = `/hub/${its.name_id}/prod`;
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page, problems } = opened;
    const log = page.getByRole('log');
    const life = page.getByRole('region', { name: 'Life' });
    const date = await page.evaluate(() => new Intl.DateTimeFormat([], { dateStyle: 'medium' }).format(Date.now()));
    await log.getByText(LINE).waitFor();
    expect(await log.getByText(date).count()).toBe(0);
    expect(await life.getByText(date).count()).toBe(0);
    await page.locator('.facts').getByText(date).waitFor();
    await page.getByLabel('Highlight').fill('needle');
    expect(await log.locator('mark').allTextContents()).toEqual(['needle']);
    await page.clock.setFixedTime(Date.now() + 2 * DAY_MS);
    await page.goto(`${muster.config.public_url}${path}/servers/${server.id}`);
    await log.getByText(LINE).waitFor();
    await log.getByText(date).waitFor();
    await life.getByText(date).first().waitFor();
    expect(problems).toEqual([]);
  });
});
