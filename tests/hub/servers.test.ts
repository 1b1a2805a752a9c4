import { describe, expect, test } from 'bun:test';
import { type SQL, sql } from 'drizzle-orm';
import { topics } from '../../src/features/topics.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { READY_SOURCE } from '../support/lobbies/room.ts';
import { STUBBORN, serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const ROW = 'ul[aria-label="Servers"] > li';

/** Inserts copies of the only server of a game, each created a minute before the last, with the members of `changes`. */
async function copyServers({ namespace_id }: { namespace_id: string }, count: number, changes: SQL): Promise<void> {
  await muster.database.transact(async (tx) => {
    await touch(tx, [topics.serversOf(namespace_id)]);
    await tx.execute(sql`
      insert into servers select (jsonb_populate_record(server, jsonb_build_object(
        'server_id', gen_random_uuid(), 'created_at', server.created_at - number * interval '1 minute'
      ) || ${changes})).*
      from servers as server, generate_series(1, ${count}::int) as number
      where server.namespace_id = ${namespace_id}`);
  });
}

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: servers', () => {
  test('a range of ports is shown with its host, of a server, of its lobby and of a new seat', async () => {
    const game = await makeControlledGame(muster, {
      game_modes: { default: { actions: { create: { enabled: true } } } },
      source: READY_SOURCE,
      network_mode: 'host',
      ports: { voice: { port_range: { min: 28_061, max: 28_070 }, protocol: 'udp', proxy: 'none' } },
    });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/lobbies`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'New lobby' }).click();
    await page.getByRole('button', { name: 'Create it' }).click();
    const dialog = page.getByRole('dialog', { name: 'The lobby is ready' });
    await dialog.getByText('127.0.0.1:28061-28070', { exact: true }).waitFor();
    await dialog.getByRole('link', { name: 'Lobby' }).click();
    await page.getByText('127.0.0.1:28061-28070', { exact: true }).waitFor();
    await page.locator('.facts').getByRole('link').first().click();
    await page.getByText('udp 127.0.0.1:28061-28070', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  test('one that has been asked to end is listed as ending until it has ended', async () => {
    const game = await makeControlledGame(muster);
    const servers = serversOf(muster, game);
    const server_id = await servers.run(STUBBORN, { lifecycle: { kill_timeout: 600_000 } });
    await servers.waitForLines(server_id, 1);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/servers`, game.cloud_token);
    const { page, problems } = opened;
    await page.locator(ROW).getByText('running', { exact: true }).waitFor();
    await page.locator(ROW).getByRole('link').click();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click();
    await page.locator('.head .badge').getByText('ending', { exact: true }).waitFor();
    await page.goBack();
    await page.getByText('No server is running').waitFor();
    await page.getByLabel('Show').selectOption('ending');
    await page.locator(ROW).getByText('ending', { exact: true }).waitFor();
    await takePictures(opened, 'servers-ending');
    await page.locator(ROW).getByRole('link').click();
    await page.locator('.head .badge').getByText('ending', { exact: true }).waitFor();
    await servers.destroy(server_id, '?override_kill_timeout=0');
    await page.locator('.head .badge').getByText('ended', { exact: true }).waitFor();
    await page.getByLabel('Events').getByText('ended').waitFor();
    expect(problems).toEqual([]);
  });

  test('of more than fit into an answer, the newest are listed and all are counted', async () => {
    const game = await makeControlledGame(muster);
    await seatOf(find(muster, game));
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    // Their rows are as long as rows may be. The answer has 8 MiB at most.
    const filling = sql`jsonb_build_object('environment', jsonb_build_object('FILLING', repeat('x', 300000)))`;
    await copyServers(game, 40, filling);
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/servers`, game.cloud_token);
    const { page, problems } = opened;
    const listed = (await page.getByText('are listed and searched.').textContent()) ?? '';
    const [count = ''] = /\d+/.exec(listed) ?? [];
    await page.getByText(`${count} of 41`, { exact: true }).waitFor();
    expect(Number(count)).toBeLessThan(41);
    expect(problems).toEqual([]);
  });

  test('all ended ones are listed, page by page, and can be filtered by a tag', async () => {
    const game = await makeControlledGame(muster);
    await seatOf(find(muster, game));
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const ended = sql`jsonb_build_object(
      'tags', jsonb_build_object('number', 'no-' || number), 'destroyed_at', now(), 'ended_at', now())`;
    await copyServers(game, 230, ended);
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/servers`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByText('1 of 1').waitFor();
    await page.getByLabel('Show').selectOption('ended');
    await page.getByText('1 to 100').waitFor();
    await page.locator(ROW).getByText('number=no-1 in').waitFor();
    expect(await page.getByRole('button', { name: 'Later servers' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Earlier servers' }).click();
    await page.getByText('101 to 200').waitFor();
    await page.getByRole('button', { name: 'Earlier servers' }).click();
    await page.getByText('201 to 230').waitFor();
    await page.locator(ROW).getByText('number=no-230 in').waitFor();
    expect(await page.getByRole('button', { name: 'Earlier servers' }).count()).toBe(0);
    await takePictures(opened, 'servers-ended');
    await page.getByLabel('Id or tag').fill('no-22');
    // It is among those that were there before, too.
    await page.locator(ROW).getByText('number=no-229 in').waitFor();
    await page.locator(ROW).nth(10).waitFor({ state: 'detached' });
    expect(await page.locator(ROW).count()).toBe(10);
    await page.getByLabel('Id or tag').fill('no-1000');
    await page.getByText('No server of this page matches these filters.').waitFor();
    await page.getByLabel('Id or tag').fill('');
    await page.getByRole('button', { name: 'Later servers' }).click();
    await page.getByText('101 to 200').waitFor();
    // The page of one list is not a page of the other.
    await page.getByLabel('Show').selectOption('ending');
    expect(new URL(page.url()).search).toBe('?show=ending');
    await page.getByLabel('Show').selectOption('ended');
    await page.getByText('1 to 100').waitFor();
    expect(problems).toEqual([]);
  });
});
