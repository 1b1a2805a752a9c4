import { beforeAll, describe, expect, test } from 'bun:test';
import { deploy } from '../support/game.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const SCRIPT = '<script>alert(1)</script>';

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a lobby', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    const create = { enabled: true, enable_public: true };
    game = await makeControlledGame(muster, {
      game_modes: { default: { max_players: 3, taggable: true, allow_dynamic_max_players: true, actions: { create } } },
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  test('its page shows players, tags and state live, and everything as text', async () => {
    const tags = { map: SCRIPT };
    const { lobby_id, player_token } = await seatOf(find(muster, game, { tags }));
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByText('Tag map').waitFor();
    await page.getByText(SCRIPT, { exact: true }).waitFor();
    const players = page.getByRole('region', { name: 'Players' }).locator('tbody tr');
    await players.getByText('reserved,').waitFor();
    // The square of the seat empties as its time runs.
    const square = page.locator('.squares > .reserved');
    expect(await square.getAttribute('title')).toMatch(/^\d+ (s|min) left$/);
    const leftOf = () => square.evaluate((one) => Number.parseFloat(one.style.getPropertyValue('--left')));
    const left = await leftOf();
    await waitFor(async () => (await leftOf()) < left, 'the time of the seat to run');
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    const server = await connectGameServer(muster, game, lobby_id);
    expect(outcomeOf(await server.connected(player_token))).toBe('200');
    await players.getByText('connected').waitFor();
    await seatOf(find(muster, game, { tags }));
    await players.nth(1).getByText('reserved').waitFor();
    await server.setState({ round: 7, motd: SCRIPT });
    await page.getByRole('region', { name: 'State of the lobby' }).getByText('"round": 7').waitFor();
    await page.getByRole('region', { name: 'State of the lobby' }).getByText(SCRIPT).waitFor();
    expect(requests).toEqual([]);
    await takePictures(opened, 'lobby-players');

    await page.getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await page.getByText('The lobby ended because it was ended by hand or by a tool.').waitFor();
    await page.getByText('ended', { exact: true }).first().waitFor();
    expect(await players.count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('its life is one strip of marks and a list of events, live, also after its end', async () => {
    const { lobby_id, player_token } = await seatOf(find(muster, game, { tags: { map: 'ice' } }));
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page, problems } = opened;
    const life = page.getByRole('region', { name: 'Life' });
    const events = life.getByRole('list', { name: 'Events' });
    const marks = (kind: string) => life.locator(`.strip > .${kind}`);
    await events.getByText('got a seat').waitFor();
    for (const stage of ['created', 'started', 'ready']) await events.getByText(stage).waitFor();
    // The server has written a line, which has its mark as well.
    await marks('lines').first().waitFor({ state: 'attached' });
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    const server = await connectGameServer(muster, game, lobby_id);
    await server.connected(player_token);
    await events.getByText(' connected').waitFor();
    await seatOf(find(muster, game, { tags: { map: 'ice' } }));
    await server.disconnected(player_token);
    await events.getByText(' left').waitFor();
    await server.setClosed(true);
    await events.getByText('closed').waitFor();
    expect([await marks('in').count(), await marks('out').count(), await marks('change').count()]).toEqual([3, 1, 1]);
    expect(requests).toEqual([]);
    await takePictures(opened, 'lobby-life');
    await muster.api.ok('DELETE', `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`, {
      token: game.cloud_token,
    });
    await events.getByText('ended').waitFor();
    const texts = await events.getByRole('listitem').allTextContents();
    const order = ['ended', 'closed', 'left', 'got a seat', 'connected', 'created'];
    const places = order.map((name) => texts.findIndex((text) => text.includes(name)));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(places).not.toContain(-1);
    // The keyboard reaches the list, which scrolls.
    await events.focus();
    await page.keyboard.press('End');
    await page.waitForFunction(() => {
      const list = document.querySelector('.life > ol');
      return list !== null && list.scrollTop + list.clientHeight >= list.scrollHeight - 2;
    });
    expect(problems).toEqual([]);
  });

  test('a lobby can be created on the page, with a seat for its creator', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'New lobby' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Seats').fill('4');
    await dialog.getByRole('button', { name: 'Create it' }).click();
    await dialog.getByRole('alert').getByText('max_players must be from 1 to 3.').waitFor();
    await dialog.getByLabel('Seats').fill('2');
    await takePictures(opened, 'new-lobby');
    await dialog.getByRole('button', { name: 'Create it' }).click();
    await dialog.getByText('The lobby is ready').waitFor();
    await takePictures(opened, 'new-lobby-made');
    await dialog.getByRole('link', { name: 'Lobby' }).click();
    await page.getByRole('region', { name: 'Players' }).getByText('reserved').waitFor();
    await page.getByText('public', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  test('a deploy by someone else leaves the form of a new lobby as it is', async () => {
    const actions = { create: { enabled: true } };
    const game_modes = { default: { max_players: 30, allow_dynamic_max_players: true, actions } };
    const busy = await makeControlledGame(muster, { game_modes });
    const answer = await muster.api.ok('GET', `/cloud/games/${busy.game_id}`, { token: busy.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod`, busy.cloud_token);
    const { page, problems } = opened;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'New lobby' }).click();
    await dialog.getByLabel('Seats').fill('20');
    const requested = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    await page.route('**/versions/*', async (route) => {
      requested.resolve();
      await released.promise;
      await route.continue();
    });
    const other = { ...busy.matchmaker, game_modes: { other: { actions }, ...game_modes } };
    await deploy(muster.api, busy, other);
    await requested.promise;
    expect(await dialog.getByLabel('Seats').inputValue()).toBe('20');
    released.resolve();
    await dialog.getByRole('option', { name: 'other' }).waitFor({ state: 'attached' });
    expect(await dialog.getByLabel('Seats').inputValue()).toBe('20');
    expect(await dialog.getByLabel('Game mode').inputValue()).toBe('default');
    // A game mode that has gone is not chosen any more.
    await deploy(muster.api, busy, { ...busy.matchmaker, game_modes: { other: { actions } } });
    await dialog.getByLabel('Seats').waitFor({ state: 'detached' });
    expect(await dialog.getByLabel('Game mode').inputValue()).toBe('other');
    await page.unroute('**/versions/*');
    await page.route('**/versions/*', (route) => route.fulfill({ status: 404, body: '{}' }));
    await deploy(muster.api, busy, other);
    await dialog.getByRole('alert').getByText('The service answered with the status 404.').waitFor();
    expect(problems).toEqual([]);
  });

  test('a new lobby whose dialog was closed is made, and is not shown in a later one', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    const dialog = page.getByRole('dialog');
    const requested = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    await page.route('**/lobbies/create', async (route) => {
      requested.resolve();
      await released.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'New lobby' }).click();
    await dialog.getByRole('button', { name: 'Create it' }).click();
    await requested.promise;
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    released.resolve();
    await page.getByText(/^Lobby [0-9a-f]{12} was created\.$/).waitFor();
    await page.getByRole('button', { name: 'New lobby' }).click();
    await dialog.getByRole('heading', { name: 'Create a lobby' }).waitFor();
    expect(problems).toEqual([]);
  });

  test('a new lobby gets a number of seats only in a game mode that takes one', async () => {
    const actions = { create: { enabled: true } };
    const mixed = await makeControlledGame(muster, {
      game_modes: { sized: { max_players: 30, allow_dynamic_max_players: true, actions }, usual: { actions } },
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${mixed.game_id}`, { token: mixed.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod`, mixed.cloud_token);
    const dialog = opened.page.getByRole('dialog');
    await opened.page.getByRole('button', { name: 'New lobby' }).click();
    await dialog.getByLabel('Game mode').selectOption('sized');
    await dialog.getByLabel('Seats').fill('20');
    await dialog.getByLabel('Game mode').selectOption('usual');
    await dialog.getByRole('button', { name: 'Create it' }).click();
    await dialog.getByText('The lobby is ready').waitFor();
    expect(opened.problems).toEqual([]);
  });

  test('where no game mode lets players create one, the page says so', async () => {
    const other = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${other.game_id}`, { token: other.cloud_token });
    await using opened = await chromium.open(`/hub/${answer.game.name_id}/prod`, other.cloud_token);
    await opened.page.getByRole('button', { name: 'New lobby' }).click();
    await opened.page.getByText('No game mode of the live version lets players create lobbies.').waitFor();
    await opened.page.getByRole('button', { name: 'Cancel' }).click();
  });
});
