import { beforeAll, describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { STUBBORN, serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);

/** Keeps back what a page subscribes to, by a part of the path, until it is released. */
async function holdWatches(page: Page, part: string) {
  const held: (() => void)[] = [];
  const received: string[] = [];
  await page.routeWebSocket(/.*/, (socket) => {
    const service = socket.connectToServer();
    socket.onMessage((message) => {
      if (String(message).includes(part)) held.push(() => service.send(message));
      else service.send(message);
    });
    service.onMessage((message) => {
      received.push(String(message));
      socket.send(message);
    });
  });
  return {
    count: () => held.length,
    hasReceived: (text: string) => received.some((message) => message.includes(text)),
    release() {
      for (const send of held.splice(0)) send();
    },
  };
}

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: what is not loaded yet', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}`;
  });

  test('the server of a lobby is not called removed', async () => {
    const { lobby_id } = await seatOf(find(muster, game));
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    const watches = await holdWatches(page, 'include_destroyed');
    await page.goto(await chromium.linkTo(`${path}/prod/lobbies/${lobby_id}`, game.cloud_token));
    await page.getByText('Game mode').waitFor();
    expect(await page.getByText('removed', { exact: true }).count()).toBe(0);
    watches.release();
    await page.getByText('Server', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  test('is requested again if no answer comes in time', async () => {
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    // The page waits for 60 s.
    await page.addInitScript(() => {
      AbortSignal.timeout = () => {
        const late = new AbortController();
        setTimeout(() => late.abort(), 2_000);
        return late.signal;
      };
    });
    let requests = 0;
    await page.route('**/audit-log*', async (route) => {
      requests += 1;
      if (requests > 1) await route.continue();
    });
    await page.goto(await chromium.linkTo(`${path}/prod/changes`, game.cloud_token));
    await waitFor(() => requests > 1, 'the page to ask again');
    await page.getByRole('table').waitFor();
    expect(problems).toEqual([]);
  });

  test('a namespace has no number of players', async () => {
    await seatOf(find(muster, game));
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    const watches = await holdWatches(page, '/matchmaker/lobbies');
    await page.goto(await chromium.linkTo(path, game.cloud_token));
    await page.getByRole('link', { name: 'Staging' }).waitFor();
    await waitFor(() => watches.count() >= 2, 'the page to watch both namespaces');
    expect(await page.getByText('players in').count()).toBe(0);
    watches.release();
    await page.getByText('0 players in 0 lobbies').waitFor();
    expect(problems).toEqual([]);
  });

  test('a server that is ending is not called ended', async () => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(STUBBORN, { lifecycle: { kill_timeout: 600_000 } });
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    // What the page shows at any time: the answers may come one after the other.
    await page.addInitScript(() => {
      const shown: string[] = [];
      Object.assign(globalThis, { shown });
      new MutationObserver(() => {
        for (const badge of document.querySelectorAll('.head .badge')) shown.push(badge.textContent ?? '');
      }).observe(document, { subtree: true, childList: true, characterData: true });
    });
    const watches = await holdWatches(page, '/end');
    await page.goto(await chromium.linkTo(`${path}/prod/servers/${server_id}`, game.cloud_token));
    await waitFor(() => watches.count() > 0, 'the page to watch the end of the server');
    await waitFor(() => watches.hasReceived('"destroyed_at"'), 'the page to know the server');
    // The page shows in a frame what it has received.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    watches.release();
    await page.locator('.head .badge').getByText('ending', { exact: true }).waitFor();
    expect(await page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown)).not.toContain('ended');
    await servers.destroy(server_id, '?override_kill_timeout=0');
    expect(problems).toEqual([]);
  });
});
