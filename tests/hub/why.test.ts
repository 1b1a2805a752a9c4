import { beforeAll, describe, expect, test } from 'bun:test';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const ROW = 'ul[aria-label="Requests"] > li';
const SCRIPT = '<script>alert(1)</script>';

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: why', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, {
      game_modes: { duel: { max_players: 2, taggable: true } },
      lobby_count_max: 2,
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });
  const duel = (tags: Record<string, string>) => find(muster, game, { game_modes: ['duel'], tags });

  test('refusals are pushed to the page, and a refusal links to each lobby that was passed over', async () => {
    await using opened = await chromium.open(`${path}/why`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByText('No request was refused in the last hour.').waitFor();
    await page.goto(`${muster.config.public_url}${path}/why?code=MATCHMAKER_QUEUE_FULL`);
    await page.getByText('No request was refused for MATCHMAKER_QUEUE_FULL in the last hour.').waitFor();
    await page.getByLabel('Reason').selectOption('');
    await page.getByText('No request was refused in the last hour.').waitFor();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await seatOf(duel({ map: 'ice' }));
    await seatOf(duel({ map: 'ice' }));
    await seatOf(duel({ map: 'sand' }));
    expect(outcomeOf(await duel({ map: SCRIPT }))).toBe('400 MATCHMAKER_TOO_MANY_LOBBIES');
    await page.locator(ROW).getByText('MATCHMAKER_TOO_MANY_LOBBIES').waitFor();
    await page.locator(ROW).getByText(`map=${SCRIPT}`).waitFor();
    expect(await page.locator(ROW).count()).toBe(1);
    expect(requests).toEqual([]);
    await page.getByLabel('Show').selectOption('all');
    await page.locator(ROW).nth(3).waitFor();
    await takePictures(opened, 'why-list');
    await page.getByLabel('Reason').selectOption('MATCHMAKER_TOO_MANY_LOBBIES');
    await page.locator(ROW).nth(1).waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?show=all&code=MATCHMAKER_TOO_MANY_LOBBIES');

    await page.locator(ROW).getByRole('link').click();
    const considered = page.getByRole('region', { name: 'Considered lobbies' });
    await considered.getByText('it had no free seat').waitFor();
    await considered.getByText('it has other tags').waitFor();
    await page.getByRole('region', { name: 'Time' }).getByText('answered', { exact: true }).waitFor();
    await takePictures(opened, 'why');
    expect(problems).toEqual([]);
  });

  test('a ray id shows its request, which can be tried again', async () => {
    const answer = await duel({ map: 'mud' });
    const ray_id = answer.headers.get('rvt-ray-id') ?? '';
    await using opened = await chromium.open(`${path}/why`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('Ray id of an answer').fill(ray_id);
    await page.getByLabel('Ray id of an answer').press('Enter');
    await page.getByText(ray_id, { exact: true }).waitFor();
    await page.getByRole('link', { name: 'MATCHMAKER_TOO_MANY_LOBBIES' }).waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').getByText('MATCHMAKER_TOO_MANY_LOBBIES').waitFor();
    await page.getByText(ray_id, { exact: true }).waitFor({ state: 'detached' });
    await page.getByText('find in duel at local with map=mud').waitFor();
    expect(problems).toEqual([]);
  });

  test('a create is tried again with its publicity, and a join by a code with the lobby that it found', async () => {
    const own = await makeControlledGame(muster, {
      game_modes: { duel: { actions: { create: { enabled: true, enable_public: true, enable_private: true } } } },
    });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    const request = async (path_of_player: string, body: object) => {
      const answer = await muster.api.call('POST', path_of_player, { token: own.public_token, body });
      return { ...answer, page: `/hub/${its.name_id}/prod/why/${answer.headers.get('rvt-ray-id')}` };
    };
    const made = await request('/matchmaker/lobbies/create', { game_mode: 'duel', publicity: 'private' });
    expect(outcomeOf(made)).toBe('200');
    const joined = await request('/matchmaker/lobbies/join', { code: made.body.lobby.code });
    expect(outcomeOf(joined)).toBe('200');
    const lost = await request('/matchmaker/lobbies/join', { code: 'NOTHING' });
    expect(outcomeOf(lost)).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    const list = `/cloud/games/${own.game_id}/namespaces/${own.namespace_id}/matchmaker/lobbies`;
    const lobbies = async () =>
      (await muster.api.ok('GET', list, { token: own.cloud_token })).rows.map(
        ({ publicity, player_count }: { publicity: string; player_count: number }) => `${publicity} ${player_count}`,
      );
    await using opened = await chromium.open(made.page, own.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The request got a seat.').waitFor();
    expect((await lobbies()).toSorted()).toEqual(['private 1', 'private 2']);
    await page.goto(`${muster.config.public_url}${joined.page}`);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The request got a seat.').waitFor();
    expect((await lobbies()).toSorted()).toEqual(['private 1', 'private 3']);
    await page.goto(`${muster.config.public_url}${lost.page}`);
    await page.getByRole('link', { name: 'MATCHMAKER_LOBBY_NOT_FOUND' }).waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('a ray id without a receipt is explained', async () => {
    await using opened = await chromium.open(`${path}/why/${crypto.randomUUID()}`, game.cloud_token);
    await opened.page.getByText('Receipts are kept for an hour').waitFor();
  });
});
