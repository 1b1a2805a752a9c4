import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { deploy } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const ROW = 'ul[aria-label="Versions"] > li';

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: versions', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  let newer_id: string;
  beforeAll(async () => {
    const made = await makeControlledGame(muster);
    game = made;
    newer_id = await deploy(muster.api, game, {
      ...made.matchmaker,
      game_modes: { default: { max_players: 5 }, duel: {} },
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod/versions`;
  });
  const liveVersion = async () => {
    const { game: read } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    return read.namespaces.find(({ name_id }: { name_id: string }) => name_id === 'prod').version_id;
  };

  test('a rollback shows what changes and what happens to lobbies, is live at once, and can be undone', async () => {
    await seatOf(find(muster, game));
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.locator(ROW).nth(2).waitFor();
    const newest = page.locator(ROW).first();
    await newest.getByText('prod', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Roll back' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Running lobbies go on with the one they have').waitFor();
    const changes = dialog.getByRole('list', { name: 'Changes' });
    await changes.getByText('matchmaker.game_modes.duel').waitFor();
    await takePictures(opened, 'versions-rollback');
    await dialog.getByRole('button', { name: 'Roll back' }).click();
    await waitFor(async () => (await liveVersion()) === game.version_id, 'the rollback');
    await page.getByText('1 lobby', { exact: true }).waitFor();
    await page.locator(ROW).nth(1).getByText('prod', { exact: true }).waitFor();
    await takePictures(opened, 'versions');
    const undos: string[] = [];
    const released = Promise.withResolvers<void>();
    await page.route('**/version', async (route) => {
      undos.push(route.request().method());
      await released.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Undo' }).click();
    // It cannot be pressed again while it runs.
    await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    released.resolve();
    await waitFor(async () => (await liveVersion()) === newer_id, 'the rollback to be undone');
    await newest.getByText('prod', { exact: true }).waitFor();
    expect(undos).toEqual(['PUT']);
    expect(problems).toEqual([]);
  });

  test('the undo of a deploy does not undo a later one', async () => {
    const own = await makeControlledGame(muster);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/versions`, own.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Roll back' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    await deploy(muster.api, own, own.matchmaker);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('alert').getByText('Nothing was undone.').waitFor();
    expect(problems).toEqual([]);
  });

  test('a history that cannot be read is not called empty', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    await page.route('**/version-history', (route) =>
      route.fulfill({ status: 500, body: '{"code":"ERROR","message":"The history cannot be read."}' }),
    );
    await page.goto(await chromium.linkTo(path, game.cloud_token));
    await page.getByRole('alert').getByText('The history cannot be read.').waitFor();
  });

  test.each([
    [503, 'SERVICE_STOPPING'],
    [503, 'DATABASE_UNAVAILABLE'],
    [503, 'DATABASE_BUSY'],
    [503, 'API_REQUEST_TIMEOUT'],
    [429, 'API_RATE_LIMIT'],
  ])('a page whose first reads are refused with %d %s reads again', async (status, code) => {
    const body = JSON.stringify({ code, message: 'Try again.' });
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    for (const path_read of ['**/cloud/auth/inspect', `**/cloud/games/*/versions/${game.version_id}`])
      await page.route(path_read, (route) => route.fulfill({ status, body }), { times: 1 });
    await page.goto(await chromium.linkTo(`${path}/${newer_id}`, game.cloud_token));
    await page.getByRole('region', { name: 'Configuration of the version' }).waitFor();
    await page.getByLabel('Compared with').selectOption(game.version_id);
    await page.getByRole('list', { name: 'Changes' }).getByText('matchmaker.game_modes.duel').waitFor();
    // A tool of the game may act, which the page knows by now.
    await page.getByRole('link', { name: 'Try it' }).first().waitFor();
    expect(problems).toEqual([]);
  });

  test('a version that cannot be read shows why, and one that does not exist says so', async () => {
    const message = 'The service failed.';
    await using opened = await chromium.openPage();
    const { page } = opened;
    const body = JSON.stringify({ code: 'INTERNAL', message });
    await page.route(`**/cloud/games/*/versions/${newer_id}`, (route) => route.fulfill({ status: 500, body }));
    await page.goto(await chromium.linkTo(`${path}/${newer_id}`, game.cloud_token));
    await page.getByRole('alert').getByText(message).waitFor();
    await page.goto(`${muster.config.public_url}${path}/${crypto.randomUUID()}`);
    await page.getByRole('heading', { name: 'There is no such version' }).waitFor();
  });

  test('a version can be compared with any other, and deployed', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.locator(ROW).nth(1).getByRole('link').click();
    const changes = page.getByRole('list', { name: 'Changes' });
    await changes.getByText('matchmaker.game_modes.default').waitFor();
    await page.getByRole('region', { name: 'Configuration of the version' }).getByText(game.build_id).waitFor();
    await takePictures(opened, 'version');
    await page.getByLabel('Compared with').selectOption({ index: 1 });
    await changes.getByText('matchmaker', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Deploy' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click();
    await page.getByText('Running lobbies go on.').waitFor();
    expect(await liveVersion()).toBe(game.version_id);
    await page.getByRole('button', { name: 'Deploy' }).waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  });

  test('versions that differ in a secret only are not called the same', async () => {
    const own = await makeControlledGame(muster);
    const deployWith = (letter: string) => {
      const verification_config = { url: 'https://example.com/verify', secret: `whsec_${btoa(letter.repeat(32))}` };
      const find_action = { enabled: true, verification_config };
      return deploy(muster.api, own, {
        ...own.matchmaker,
        game_modes: { default: { actions: { find: find_action } } },
      });
    };
    await deployWith('x');
    await deployWith('y');
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/versions`, own.cloud_token);
    await opened.page.getByRole('button', { name: 'Roll back' }).click();
    const same = 'Their configurations are the same, apart from secrets, which are not shown.';
    await opened.page.getByRole('dialog').getByText(same).waitFor();
  });

  test('of many builds, the newest are listed first, and all of them by a button', async () => {
    const own = await makeControlledGame(muster);
    await muster.database.queries.execute(sql`
      insert into builds select (jsonb_populate_record(build, jsonb_build_object('build_id', gen_random_uuid()))).*
      from builds as build, generate_series(1, 50) where build.game_id = ${own.game_id}`);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/versions`, own.cloud_token);
    const rows = opened.page.getByRole('region', { name: 'Builds' }).locator('tbody tr');
    await rows.nth(49).waitFor();
    expect(await rows.count()).toBe(50);
    await opened.page.getByRole('button', { name: 'All 51 builds' }).click();
    await rows.nth(50).waitFor();
  });

  test('the builds of the game are listed', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const builds = opened.page.getByRole('region', { name: 'Builds' });
    await builds.getByText(game.build_id.slice(-12)).waitFor();
    await builds.getByText('complete', { exact: true }).waitFor();
  });
});
