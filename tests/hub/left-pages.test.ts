import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { deploy, listServers } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);
/** An upload reads its file by such parts. */
const PART_BYTES = 8 * 1024 ** 2;

/** Lets each read of a path fail, as if the service were away. Returns the function that counts the attempts. */
async function failReads(page: Page, path: string): Promise<() => number> {
  let attempts = 0;
  await page.route(path, (route) => {
    attempts += 1;
    return route.abort();
  });
  return () => attempts;
}

/** Holds the answer to each POST to a path. Returns what waits for the first one, and what lets all go on. */
async function holdPosts(page: Page, path: string) {
  const requested = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  await page.route(path, async (route) => {
    if (route.request().method() === 'POST') {
      requested.resolve();
      await released.promise;
    }
    await route.continue();
  });
  return { requested: requested.promise, release: released.resolve };
}

/** Follows a link to another page of the hub. */
const follow = (page: Page, href: string) =>
  page.evaluate((path) => {
    const link = Object.assign(document.createElement('a'), { href: path });
    document.querySelector('main')?.append(link);
    link.click();
    link.remove();
  }, href);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a page that was left', () => {
  test('reads no more, also if the service was away', async () => {
    const game = await makeControlledGame(muster);
    await seatOf(find(muster, game));
    // The page of the lobbies reads the live version.
    await deploy(muster.api, game, game.matchmaker);
    const [server] = await listServers(muster, game);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const path = `/hub/${answer.game.name_id}/prod`;
    await using opened = await chromium.open(`${path}/lobbies`, game.cloud_token);
    const { page } = opened;
    await page.getByText('1 of 1').waitFor();
    // Each page, and the path that it reads.
    const pages: [href: string, path: string][] = [
      [`why/${crypto.randomUUID()}`, '**/matchmaker/receipts/*'],
      [`servers/${server.id}?search=this`, '**/log-search?*'],
      ['changes', '**/audit-log*'],
      [`versions/${game.version_id}`, '**/versions/*'],
      ['versions', '**/version-history'],
      ['settings', '**/namespaces/*'],
    ];
    let before: { path: string; attempts: () => number } | undefined;
    for (const [href, path_read] of pages) {
      const attempts = await failReads(page, path_read);
      await follow(page, `${path}/${href}`);
      await waitFor(() => attempts() > 0, `the page ${href} to read`);
      const attempts_before = before?.attempts();
      // Reads are repeated in the order in which they failed, so one of the page before would come first.
      await waitFor(() => attempts() > 1, `the page ${href} to read again`);
      expect([before?.path, before?.attempts()]).toEqual([before?.path, attempts_before]);
      before = { path: path_read, attempts };
    }
  });

  test('ends its requests', async () => {
    const game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod`, game.cloud_token);
    const { page, problems } = opened;
    // It is never answered.
    await page.route('**/audit-log*', () => {});
    const requested = page.waitForRequest('**/audit-log*');
    await page.getByRole('link', { name: 'Changes' }).click();
    const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/audit-log'));
    await requested;
    await page.getByRole('link', { name: 'Servers', exact: true }).click();
    await ended;
    expect(problems).toEqual([]);
  });

  test('reports a token that was made after that, because it was not shown', async () => {
    const game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod/settings`, game.cloud_token);
    const { page, problems } = opened;
    const held = await holdPosts(page, '**/tokens/cloud');
    await page.getByRole('button', { name: 'New cloud token' }).click();
    await held.requested;
    await page.getByRole('link', { name: 'Servers', exact: true }).click();
    await page.getByRole('heading', { name: 'Servers' }).waitFor();
    held.release();
    await page.getByText('A token was created after you left the page, so it was not shown.').waitFor();
    expect(problems).toEqual([]);
  });

  test('opens no dialog, which would hide later outcomes', async () => {
    const game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod`, game.cloud_token);
    const { page, problems } = opened;
    const held = await holdPosts(page, '**/shares');
    const answered = page.waitForResponse('**/shares');
    await page.getByRole('button', { name: 'Share' }).click();
    await held.requested;
    await page.getByRole('link', { name: 'Servers', exact: true }).click();
    await page.getByRole('heading', { name: 'Servers' }).waitFor();
    held.release();
    await (await answered).finished();
    await page.getByText('A share link was created after you left the page.').waitFor();
    await page.route('**/hub/session', (route) => route.abort());
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('alert').getByText('The service does not answer.').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).waitFor();
    expect(problems).toEqual([]);
  });

  test('leads nowhere else when its answer comes', async () => {
    const game = await makeControlledGame(muster, {
      game_modes: { default: { max_players: 1 } },
      lobby_count_max: 1,
    });
    await seatOf(find(muster, game));
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const refused = await find(muster, game);
    expect(outcomeOf(refused)).toBe('400 MATCHMAKER_TOO_MANY_LOBBIES');
    const path = `/hub/${answer.game.name_id}/prod`;
    await using opened = await chromium.open(`${path}/why/${refused.headers.get('rvt-ray-id')}`, game.cloud_token);
    const { page, problems } = opened;
    const at = (place: string) => `${muster.config.public_url}${path}/${place}`;
    // A request that is tried again.
    const find_held = await holdPosts(page, '**/lobbies/find');
    await page.getByRole('button', { name: 'Try again' }).click();
    await find_held.requested;
    await page.getByRole('link', { name: 'Versions', exact: true }).click();
    await page.getByRole('heading', { name: 'Builds' }).waitFor();
    find_held.release();
    await page.getByRole('alert').getByText('MATCHMAKER_TOO_MANY_LOBBIES').waitFor();
    expect(page.url()).toBe(at('versions'));
    // A version with an uploaded build.
    await page.getByLabel('File of a game server').setInputFiles({
      name: 'server.ts',
      mimeType: 'text/plain',
      buffer: Buffer.from('// nothing'),
    });
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    const version_held = await holdPosts(page, '**/versions');
    await page.getByRole('button', { name: 'New version with it' }).click();
    await version_held.requested;
    await page.getByRole('link', { name: 'Changes' }).click();
    await page.getByRole('heading', { name: 'Changes' }).waitFor();
    version_held.release();
    await page.getByText(/^The version .+ was created\.$/).waitFor();
    expect(page.url()).toBe(at('changes'));
    expect(problems).toEqual([]);
  });

  test('an upload that was stopped reads no further part of its file', async () => {
    const game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.openPage();
    const { page, problems } = opened;
    // The first part is read when the test says so.
    await page.addInitScript((part_bytes) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const held = { reads: 0, release: resolve };
      const read = Blob.prototype.arrayBuffer;
      Blob.prototype.arrayBuffer = async function (this: Blob) {
        if (this.size === part_bytes) {
          held.reads += 1;
          await promise;
        }
        return await read.call(this);
      };
      Object.assign(globalThis, { held });
    }, PART_BYTES);
    const countReads = () => page.evaluate(() => (globalThis as unknown as { held: { reads: number } }).held.reads);
    const upload = async (name: string, size: number) => {
      const file = { name, mimeType: 'application/x-tar', buffer: Buffer.alloc(size) };
      await page.getByLabel('File of a game server').setInputFiles(file);
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Command').fill('./server');
      await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
    };
    await page.goto(await chromium.linkTo(`/hub/${answer.game.name_id}/prod/versions`, game.cloud_token));
    await upload('large.tar', 3 * PART_BYTES);
    await waitFor(async () => (await countReads()) > 0, 'the first part to be read');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.evaluate(() => (globalThis as unknown as { held: { release(): void } }).held.release());
    await upload('small.tar', 1_024);
    await page.getByRole('alert').waitFor();
    expect(await countReads()).toBe(1);
    expect(problems).toEqual([]);
  });

  test('an upload that was stopped reads no more, and prepares nothing', async () => {
    const game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod/versions`, game.cloud_token);
    const { page } = opened;
    const attempts = await failReads(page, `**/cloud/games/${game.game_id}/builds`);
    const prepared = await failReads(page, '**/builds/prepare');
    await page.getByLabel('File of a game server').setInputFiles({
      name: 'server.ts',
      mimeType: 'text/plain',
      buffer: Buffer.from('// nothing'),
    });
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await waitFor(() => attempts() > 0, 'the upload to read the builds');
    await page.getByRole('button', { name: 'Stop' }).click();
    const attempts_before = attempts();
    const later = await failReads(page, '**/audit-log*');
    await page.getByRole('link', { name: 'Changes' }).click();
    await waitFor(() => later() > 1, 'another page to read again');
    expect([attempts(), prepared()]).toEqual([attempts_before, 0]);
  });
});
