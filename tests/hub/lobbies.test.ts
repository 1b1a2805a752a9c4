import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { topics } from '../../src/features/topics.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { makeGame } from '../support/game.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { copyLobbies } from '../support/lobbies/lobby-copies.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const ROW = 'ul[aria-label="Lobbies"] > li';

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: lobbies', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, {
      game_modes: { default: {}, duel: { max_players: 2 }, trio: { max_players: 3 } },
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  test('a namespace without lobbies shows the command of a find, with its values; the command starts a lobby', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'No lobby is running' }).waitFor();
    await page.getByRole('button', { name: 'Create a public token for it' }).click();
    await page.getByText('The command has a new public token.').waitFor();
    await takePictures(opened, 'lobbies-none');
    const command = await page.locator('.command code').textContent();
    expect(command).toContain(`${muster.config.public_url}/matchmaker/lobbies/find`);
    const shell = Bun.spawn(['sh', '-c', command ?? ''], { stdout: 'pipe', stderr: 'ignore' });
    const { lobby } = await new Response(shell.stdout).json();
    await page.getByRole('link', { name: lobby.lobby_id.slice(-12) }).waitFor();
    expect(problems).toEqual([]);
  });

  test('a find, a player who connects and one who leaves change the seats without a request of the page', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await seatOf(find(muster, game));
    await page.locator(ROW).first().waitFor();
    // The page has read all that it shows.
    await page.waitForLoadState('networkidle');
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    const { lobby_id, player_token } = await seatOf(find(muster, game, { game_modes: ['trio'] }));
    const row = page.locator(ROW).filter({ hasText: lobby_id.slice(-12) });
    await row.getByRole('img', { name: '0 connected, 1 reserved, 2 free' }).waitFor();
    const server = await connectGameServer(muster, game, lobby_id);
    expect(outcomeOf(await server.connected(player_token))).toBe('200');
    await row.getByRole('img', { name: '1 connected, 0 reserved, 2 free' }).waitFor();
    // A second player keeps the lobby when the first one leaves.
    await seatOf(find(muster, game, { game_modes: ['trio'] }));
    await row.getByRole('img', { name: '1 connected, 1 reserved, 1 free' }).waitFor();
    await server.disconnected(player_token);
    await row.getByRole('img', { name: '0 connected, 1 reserved, 2 free' }).waitFor();
    expect(requests).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('a lobby can be closed, opened and ended; a question that is cancelled does nothing', async () => {
    // In a game of its own, the lobby has one player.
    const own = await makeControlledGame(muster);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    const { lobby_id } = await seatOf(find(muster, own));
    await using opened = await chromium.open(`/hub/${its.name_id}/prod`, own.cloud_token);
    const { page } = opened;
    const row = page.locator(ROW).filter({ hasText: lobby_id.slice(-12) });
    await row.getByRole('button', { name: 'Close' }).click();
    await row.getByText('closed', { exact: true }).waitFor();
    await takePictures(opened, 'lobbies');
    await row.getByRole('button', { name: 'Reopen' }).press('Enter');
    await row.getByText('closed', { exact: true }).waitFor({ state: 'detached' });
    // The keyboard goes on where it was, also after a button that was disabled meanwhile.
    await page.waitForFunction(() => document.activeElement?.textContent === 'Close');
    await row.getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await row.getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByText('Its server ends, too, and its player loses the seat.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await row.waitFor({ state: 'detached' });
    await page.getByText(`Lobby ${lobby_id.slice(-12)} has ended.`).waitFor();
  });

  test('the reason why an action failed stays while a filter is typed, and goes with the page', async () => {
    const game = await makeControlledGame(muster);
    const { body } = await find(muster, game);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod/lobbies`, game.cloud_token);
    const { page } = opened;
    await page.route(`**/lobbies/${body.lobby.lobby_id}*`, (route) =>
      route.request().method() === 'GET'
        ? route.continue()
        : route.fulfill({ status: 400, json: { message: 'It cannot be ended.' } }),
    );
    await page.locator(ROW).getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    const reason = page.getByText('It cannot be ended.');
    await reason.waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Id of lobby or server').fill('abc');
    await page.getByText('No lobby matches these filters.').waitFor();
    expect(await reason.isVisible()).toBe(true);
    await page.getByRole('link', { name: 'Versions' }).click();
    await reason.waitFor({ state: 'detached' });
  });

  test('filters are in the address, so they can be shared', async () => {
    const { lobby_id } = await seatOf(find(muster, game, { game_modes: ['duel'] }));
    await using opened = await chromium.open(`${path}?mode=duel`, game.cloud_token);
    const { page } = opened;
    await page.locator(ROW).first().waitFor();
    expect(await page.locator(ROW).getByText('default').count()).toBe(0);
    await page.getByLabel('Id of lobby or server').fill(lobby_id.slice(0, 8));
    await page.getByLabel('Status').selectOption('closed');
    await page.getByText('No lobby matches these filters.').waitFor();
    const url = new URL(page.url());
    expect(Object.fromEntries(url.searchParams)).toEqual({
      mode: 'duel',
      find: lobby_id.slice(0, 8),
      status: 'closed',
    });
    await page.getByLabel('Status').selectOption('');
    await page.getByRole('link', { name: lobby_id.slice(-12) }).waitFor();
    // A value that no lobby has stays in sight.
    await page.goto(`${muster.config.public_url}${path}?mode=gone`);
    await page.getByText('No lobby matches these filters.').waitFor();
    expect(await page.getByLabel('Game mode').inputValue()).toBe('gone');
  });

  test("another tenant's token sees neither the game nor its lobbies", async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    await using opened = await chromium.open(path, other.cloud_token);
    await opened.page.getByRole('heading', { name: 'There is no such game' }).waitFor();
  });

  test('the game shows what is live in each namespace', async () => {
    await using opened = await chromium.open(path.replace(/\/prod$/, ''), game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('link', { name: 'Production' }).waitFor();
    await page.getByRole('link', { name: 'Staging' }).waitFor();
    await takePictures(opened, 'game');
    await page.getByRole('link', { name: 'Production' }).click();
    await page.locator(ROW).first().waitFor();
    expect(new URL(page.url()).pathname).toBe(path);
    expect(problems).toEqual([]);
  });

  test('of thousands of lobbies only those in the window are in the document', async () => {
    const many = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, many));
    const lobbies = sql`lobbies as lobby, generate_series(1, 2999) where lobby.lobby_id = ${lobby_id}`;
    await muster.database.transact(async (tx) => {
      await touch(tx, [topics.lobbiesOf(many.namespace_id)]);
      await tx.execute(copyLobbies(lobbies, sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null)`));
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${many.game_id}`, { token: many.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod`, many.cloud_token);
    const { page } = opened;
    await page.getByText('3000 of 3000').waitFor();
    expect(await page.locator(ROW).count()).toBeLessThan(60);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await page.locator(`${ROW}[aria-posinset="3000"]`).waitFor();
    expect(await page.locator(ROW).count()).toBeLessThan(60);

    // No page is sent all lobbies, neither at first nor for a seat.
    const its_path = `/hub/${answer.game.name_id}`;
    const shown: [path: string, text: string][] = [
      [`${its_path}/prod`, '3000 of 3000'],
      [`${its_path}/prod/lobbies/${lobby_id}`, 'Game mode'],
      [`${its_path}/prod/versions`, 'What was live here'],
      [its_path, '3000 lobbies'],
    ];
    for (const [place, [one, text]] of shown.entries()) {
      await using other = await chromium.open(one, many.cloud_token);
      let bytes = 0;
      other.page.on('websocket', (socket) => {
        socket.on('framereceived', ({ payload }) => {
          bytes += payload.length;
        });
      });
      await other.page.getByText(text).first().waitFor();
      await other.page.keyboard.press('Control+k');
      await other.page.getByRole('combobox', { name: 'Search' }).waitFor();
      expect({ one, is_small: bytes > 100 && bytes < 150_000 }).toEqual({ one, is_small: true });
      await other.page.keyboard.press('Escape');
      bytes = 0;
      await seatOf(find(muster, many));
      if (place === 0) await other.page.locator('.figures dd').nth(2).getByText('3001').waitFor();
      expect(bytes).toBeLessThan(10_000);
    }
  });
});
