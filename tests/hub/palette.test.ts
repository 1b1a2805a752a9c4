import { beforeAll, describe, expect, test } from 'bun:test';
import { deploy, type TestGame } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: the palette', () => {
  let game: TestGame & { version_id: string };
  let path: string;
  let newer_id: string;
  beforeAll(async () => {
    const made = await makeControlledGame(muster);
    game = made;
    newer_id = await deploy(muster.api, game, { ...made.matchmaker, max_players: 5 });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });
  const liveVersion = async () => {
    const { game: read } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    return read.namespaces.find(({ name_id }: { name_id: string }) => name_id === 'prod').version_id;
  };

  test('rolls back with the keyboard alone, and undoes it', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Production' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).waitFor();
    await takePictures(opened, 'palette');
    await page.keyboard.type('rollback');
    await page.getByRole('option', { name: 'Roll back prod' }).waitFor();
    await page.keyboard.press('Enter');
    await waitFor(async () => (await liveVersion()) === game.version_id, 'the rollback');
    await page.getByRole('button', { name: 'Undo' }).focus();
    await page.keyboard.press('Enter');
    await waitFor(async () => (await liveVersion()) === newer_id, 'the rollback to be undone');
    expect(problems).toEqual([]);
  });

  test('opens a version by its name, and does not deploy it', async () => {
    const live_id = await liveVersion();
    const { game: read } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const other = read.versions.find(({ version_id }: { version_id: string }) => version_id !== live_id);
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Production' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill(other.display_name);
    await page.getByRole('option', { name: `Deploy ${other.display_name}` }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: other.display_name }).waitFor();
    expect(await liveVersion()).toBe(live_id);
    expect(problems).toEqual([]);
  });

  test('runs the command that the arrows chose, also when commands before it come meanwhile', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Production' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill('prod');
    const chosen = page.locator('[role=option][aria-selected=true]');
    await page.getByRole('option', { name: 'prod namespace' }).waitFor();
    // The deployments are read on their own, and may come last.
    await page.getByRole('option', { name: 'Roll back prod' }).waitFor();
    while ((await chosen.textContent()) !== 'prod namespace') await page.keyboard.press('ArrowDown');
    const before = await page.getByRole('option').count();
    const live_id = await liveVersion();
    // A new version can be deployed to prod, above the namespace.
    const { version_id } = await muster.api.ok('POST', `/cloud/games/${game.game_id}/versions`, {
      token: game.cloud_token,
      body: { display_name: 'one that comes later', config: {} },
    });
    await page.getByRole('option', { name: 'Deploy one that comes later to prod' }).waitFor();
    expect(await page.getByRole('option').count()).toBe(before + 1);
    expect(await chosen.textContent()).toBe('prod namespace');
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Search' }).waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Production' }).waitFor();
    expect(await liveVersion()).toBe(live_id);
    expect(version_id).not.toBe(live_id);
    expect(problems).toEqual([]);
  });

  test('goes to pages, lobbies and ids; arrows move, Escape closes', async () => {
    const { lobby_id } = await seatOf(find(muster, game));
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('link', { name: lobby_id.slice(-12) }).waitFor();
    await page.getByRole('button', { name: 'pages and actions' }).click();
    await page.getByRole('combobox', { name: 'Search' }).fill(lobby_id.slice(-12));
    await page.getByRole('option', { name: 'lobby' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: lobby_id.slice(-12) }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill(lobby_id);
    await page.getByRole('option').nth(2).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await page.locator('[role=option][aria-selected=true]').textContent()).toContain('server');
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'Search' }).waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill('nothing of this name');
    await page.getByText('No match.').waitFor();
    await page.getByRole('combobox', { name: 'Search' }).fill('sett');
    await page.getByRole('option', { name: 'Settings' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Settings of Production' }).waitFor();
    expect(problems).toEqual([]);
  });
});
