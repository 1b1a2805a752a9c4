import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { topics } from '../../src/features/topics.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { makeGame } from '../support/game.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { copyLobbies } from '../support/lobbies/lobby-copies.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const ROW = 'ul[aria-label="Lobbies"] > li';

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: share links', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { game_modes: { default: { max_players: 3, taggable: true } } });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });
  /** Makes a link on a page of the hub. */
  async function makeLink(at: string): Promise<string> {
    await using opened = await chromium.open(at, game.cloud_token);
    await opened.page.getByRole('button', { name: 'Share' }).click();
    const link = await opened.page.getByRole('dialog').locator('code').textContent();
    expect(opened.problems).toEqual([]);
    return link ?? '';
  }

  test('a link of a namespace shows its lobbies live, without any action, until it is revoked', async () => {
    const link = await makeLink(path);
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    await page.goto(link);
    await page.getByText('No lobby is running. New ones appear here.').waitFor();
    const requests: string[] = [];
    page.on('request', (request) => {
      if (!request.url().includes('/hub-files/')) requests.push(request.url());
    });
    const { lobby_id, player_token } = await seatOf(find(muster, game, { tags: { map: '<b>ice</b>' } }));
    const row = page.locator(ROW);
    await row.getByRole('img', { name: '0 connected, 1 reserved, 2 free' }).waitFor();
    await takePictures(opened, 'shared');
    await row.getByRole('link', { name: lobby_id.slice(-12) }).click();
    await page.getByText('<b>ice</b>').waitFor();
    const server = await connectGameServer(muster, game, lobby_id);
    await server.connected(player_token);
    await page.getByRole('region', { name: 'Players' }).getByText('connected').waitFor();
    expect(requests).toEqual([]);
    expect(await page.getByRole('button').count()).toBe(0);
    await takePictures(opened, 'shared-lobby');
    await page.reload();
    await page.getByText('<b>ice</b>').waitFor();

    await using owner = await chromium.open(`${path}/settings`, game.cloud_token);
    await owner.page.getByRole('button', { name: /^Revoke the link/ }).click();
    await owner.page.getByText('The link is revoked.').waitFor();
    await page.getByRole('alert').getByText('This link has expired or was revoked.').waitFor();
    expect(problems).toEqual([]);
  });

  test('links that end with all tokens of the game leave the list', async () => {
    const own = await makeGame(muster.api, muster.administrator_token);
    const shares = `/cloud/games/${own.game_id}/namespaces/${own.namespace_id}/shares`;
    await muster.api.ok('POST', shares, { token: own.cloud_token, body: {} });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/settings`);
    const { page, problems } = opened;
    const links = page.getByRole('button', { name: /^Revoke the link/ });
    await links.waitFor();
    await page.getByRole('button', { name: 'Revoke all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke all' }).click();
    await links.waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('heading', { name: 'Tokens' }).waitFor();
    expect(await links.count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('a link of a namespace shows all of its lobbies, of which only the visible ones are sent', async () => {
    const many = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, many));
    const lobbies = sql`lobbies as lobby, generate_series(1, 499) where lobby.lobby_id = ${lobby_id}`;
    await muster.database.transact(async (tx) => {
      await touch(tx, [topics.lobbiesOf(many.namespace_id)]);
      await tx.execute(copyLobbies(lobbies, sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null)`));
    });
    const shares = `/cloud/games/${many.game_id}/namespaces/${many.namespace_id}/shares`;
    const { url } = await muster.api.ok('POST', shares, { token: many.cloud_token, body: {} });
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    await page.goto(url);
    await page.locator(ROW).first().waitFor();
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await page.locator(`${ROW}[aria-posinset="500"]`).waitFor();
    expect(problems).toEqual([]);
  });

  test('a link that is pasted over the address of an open page is shown, and "back" ends that', async () => {
    const link = await makeLink(path);
    await using opened = await chromium.open('/', game.cloud_token);
    const { page } = opened;
    await page.getByRole('heading', { name: 'Games' }).waitFor();
    await page.goto(`${muster.config.public_url}${new URL(link).pathname}`);
    await page.getByRole('heading', { name: 'There is no such game' }).waitFor();
    await page.goto(link);
    await page.getByText('view only').waitFor();
    await page.getByRole('heading', { name: 'Lobbies' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'There is no such game' }).waitFor();
  });

  test('a link of a lobby shows no other lobby', async () => {
    const { lobby_id } = await seatOf(find(muster, game, { tags: { map: 'one' } }));
    const other = await seatOf(find(muster, game, { tags: { map: 'other' } }));
    const link = await makeLink(`${path}/lobbies/${lobby_id}`);
    await using opened = await chromium.openPage();
    await opened.page.goto(link);
    await opened.page.getByText('one', { exact: true }).waitFor();
    await using second = await chromium.openPage();
    await second.page.goto(link.replace(lobby_id, other.lobby_id));
    await second.page.getByRole('alert').waitFor();
    expect(await second.page.getByText('other', { exact: true }).count()).toBe(0);
  });
});
