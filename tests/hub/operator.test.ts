import { describe, expect, test } from 'bun:test';
import { WITHOUT_PAGES } from '../support/browser.ts';
import { makeGame } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { shareChromium, takePictures } from '../support/hub-page.ts';
import { makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: operating', () => {
  test('an administrator sees machines, drains one and ends the drain; the changes are listed', async () => {
    await using opened = await chromium.open('/');
    const { page, troubles } = opened;
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
    await machines.getByRole('button', { name: 'Drain', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('region', { name: 'Changes' }).getByText('setMachineDrain').first().waitFor();
    await takePictures(opened, 'operator');
    expect(troubles).toEqual([]);
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
    await page.getByRole('heading', { name: 'There is no such game: ~operator' }).waitFor();
  });

  test('a game shows lobbies that failed, and who changed what', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, game));
    const environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
    const { servers } = await muster.api.ok('GET', `${environment}/servers`, { token: game.cloud_token });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}`, game.cloud_token);
    const { page, troubles } = opened;
    await page.getByRole('link', { name: 'Production' }).waitFor();
    await muster.api.ok('DELETE', `${environment}/servers/${servers[0].id}`, { token: game.cloud_token });
    await page.getByRole('link', { name: 'The last one' }).click();
    await page.getByRole('heading', { name: lobby_id.slice(-12) }).waitFor();
    await page.getByRole('link', { name: 'Changes' }).click();
    await page.getByText('destroyServer').waitFor();
    await waitFor(async () => (await page.locator('tbody tr').count()) > 2, 'the changes');
    await takePictures(opened, 'changes');
    expect(troubles).toEqual([]);
  });
});
