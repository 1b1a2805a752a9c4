import { describe, expect, test } from 'bun:test';
import { makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService({ MUSTER_LIMITS_SCALE: '100' });
const chromium = shareChromium(muster);
/** With two watches for each, more than the service allows a caller. */
const NAMESPACES = 70;
const WATCHED_MAX = 30;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a game', () => {
  test('with many namespaces shows the players of the first ones, and says so of the others', async () => {
    const game = await makeControlledGame(muster);
    const { game_id, version_id, cloud_token: token } = game;
    for (let number = 0; number < NAMESPACES; number += 1) {
      const body = { display_name: `Space ${number}`, name_id: `space-${number}`, version_id };
      await muster.api.ok('POST', `/cloud/games/${game_id}/namespaces`, { token, body });
    }
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game_id}`, { token });
    // Two tabs of one bearer share its watches.
    await using first = await chromium.open(`/hub/${its.name_id}`, token);
    await using second = await chromium.open(`/hub/${its.name_id}`, token);
    for (const { page } of [first, second]) {
      const cards = page.locator('.cards > li');
      await cards
        .getByText('0 players in 0 lobbies')
        .nth(WATCHED_MAX - 1)
        .waitFor();
      expect(await cards.count()).toBe(its.namespaces.length);
      expect(await cards.getByText('players in').count()).toBe(WATCHED_MAX);
      await page.getByText(`Only the first ${WATCHED_MAX} namespaces show their players here.`).waitFor();
    }
    await takePictures(first, 'game-namespaces');
    expect([...first.problems, ...second.problems]).toEqual([]);
  });
});
