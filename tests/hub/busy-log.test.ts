import { describe, expect, test } from 'bun:test';
import { find, makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const LINES_KEPT_MAX = 2_000;
const LINES = 30_000;
/** What the page needs with as many lines as it keeps is about 10 MiB; all of these lines would be more than this. */
const HEAP_MAX_BYTES = 30 * 2 ** 20;
const SAMPLES = 6;
const WAIT_MS = 120_000;
const TIMEOUT_MS = 200_000;
/** Writes a thousand lines a second. */
const BUSY_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
Bun.serve({ port: Number(PORT_game), fetch: () => new Response() });
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
const started = performance.now();
let line = 0;
setInterval(() => {
  for (; line < performance.now() - started; line += 1) console.log('line ' + line + ' of a match that goes on');
}, 20);
`;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a busy log', () => {
  test(
    'of a thousand lines a second takes no more memory over time, and says what it dropped',
    async () => {
      const game = await makeControlledGame(muster, { source: BUSY_SOURCE });
      const answer = await find(muster, game);
      expect(outcomeOf(answer)).toBe('200');
      const { lobby_id } = answer.body.lobby;
      const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
      await using opened = await chromium.open(`/hub/${its.name_id}/prod/lobbies/${lobby_id}`, game.cloud_token);
      const { page, context, problems } = opened;
      const inspector = await context.newCDPSession(page);
      const log = page.getByRole('log');
      const droppedOf = async () => {
        const text = await log.getByText('earlier lines are not shown').first().textContent();
        return Number.parseInt(text ?? '', 10);
      };
      const usedBytes = async () => {
        await inspector.send('HeapProfiler.collectGarbage');
        const { usedSize } = await inspector.send('Runtime.getHeapUsage');
        return usedSize;
      };
      await waitFor(async () => (await droppedOf()) > LINES, 'the page to drop lines', WAIT_MS);
      const used: number[] = [];
      for (let sample = 0; sample < SAMPLES; sample += 1) used.push(await usedBytes());
      console.log(`heap with a busy log: ${used.map((bytes) => `${Math.round(bytes / 2 ** 20)} MiB`).join(', ')}`);
      // Lines that come in at the moment are in some of the samples.
      expect(Math.min(...used)).toBeLessThan(HEAP_MAX_BYTES);
      expect(await log.locator('.line').count()).toBe(LINES_KEPT_MAX);
      await page.getByLabel('Search the whole log').fill('line 7 of');
      await log.getByText('line 7 of a match', { exact: false }).first().waitFor();
      expect(problems).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
