// Takes the pictures of the hub in docs/pictures: `bun .ci/hub-pictures.ts`. Starts a service with a game, lets bots play it
// from the page "Try it" for some minutes, so that the graph has a line, and needs Chromium.
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import type { Api } from '../tests/support/api.ts';
import { uploadScript } from '../tests/support/game.ts';
import { launchChromium } from '../tests/support/hub/browser.ts';
import { ROOM_SOURCE } from '../tests/support/lobbies/room.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';

const FOLDER = resolve(import.meta.dir, '../docs/pictures');
const SIZE = { width: 1280, height: 1000 };
const BYTES_MAX = 80_000;
const QUALITY = 80;
const BOTS = { 'free-for-all': '24', duel: '6' };
const PLAYED_FOR_MS = 100_000;

await using home = await makeHome({ MUSTER_DEMO: 'off' });
const program = await home.start({ command: commandOf('source') });
const game = await makeTanks(program);
await using browser = await launchChromium();
await playWithBots(browser);
await Bun.sleep(PLAYED_FOR_MS);
const ray_id = await findInVain(program.api);
const lobby_id = await fullestLobby(program.api);
await mkdir(FOLDER, { recursive: true });
await takePicture('hub-lobbies', '/hub/tanks/prod?over=hour', 'Players over');
await takePicture('hub-lobby', `/hub/tanks/prod/lobbies/${lobby_id}`, 'got a seat');
await takePicture('hub-why', `/hub/tanks/prod/why/${ray_id}`, 'Considered lobbies');

interface Tanks {
  game_id: string;
  namespace_id: string;
  cloud_token: string;
  public_token: string;
}

/** Makes a game with two game modes, whose server is the example room. */
async function makeTanks({ api, administrator_token: token }: Program): Promise<Tanks> {
  const { group_id } = await api.ok('POST', '/group/groups', { token, body: { display_name: 'Acme Games' } });
  const body = { display_name: 'Tanks', developer_group_id: group_id };
  const { game_id } = await api.ok('POST', '/cloud/games', { token, body });
  const { game: made } = await api.ok('GET', `/cloud/games/${game_id}`, { token });
  const { namespace_id } = made.namespaces.find(({ name_id }: { name_id: string }) => name_id === 'prod');
  const tokenAt = async (path: string) => (await api.ok('POST', path, { token, body: {} })).token;
  const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
  const cloud_token = await tokenAt(`/cloud/games/${game_id}/tokens/cloud`);
  const public_token = await tokenAt(`${namespace}/tokens/public`);
  await api.ok('POST', `${namespace}/mm-config`, { token, body: { lobby_count_max: 16, max_players: 64 } });
  const tanks = { game_id, namespace_id, cloud_token, public_token };
  const unused = { group_id, staging_id: '', service_token: '' };
  const image_id = await uploadScript(api, { ...tanks, ...unused }, ROOM_SOURCE);
  const matchmaker = {
    game_modes: {
      'free-for-all': { max_players: 8, taggable: true },
      duel: { max_players: 2, taggable: true },
    },
    docker: { image_id, ports: { game: { port: 80, protocol: 'http' } } },
  };
  const version = { display_name: '1.4.0', config: { matchmaker } };
  const { version_id } = await api.ok('POST', `/cloud/games/${game_id}/versions`, { token, body: version });
  await api.ok('PUT', `${namespace}/version`, { token, body: { version_id } });
  return tanks;
}

async function openPage(path: string, opened: Browser): Promise<Page> {
  const page = await (await opened.newContext({ viewport: SIZE, colorScheme: 'light' })).newPage();
  const body = {};
  const { url } = await program.api.ok('POST', '/hub/links', { token: program.administrator_token, body });
  const link = new URL(url);
  await page.goto(`${link.origin}${path}${link.hash}`);
  return page;
}

/** Lets bots play both game modes, each from a page of its own. */
async function playWithBots(opened: Browser): Promise<void> {
  for (const [mode, count] of Object.entries(BOTS)) {
    const page = await openPage('/hub/tanks/prod/try', opened);
    await page.getByLabel('Game mode').selectOption(mode);
    await page.getByLabel('Bots').fill(count);
    await page.getByRole('button', { name: 'Start' }).click();
  }
}

/** Sends a find that no lobby can take. Returns its ray id. */
async function findInVain(api: Api): Promise<string> {
  const body = { game_modes: ['free-for-all'], tags: { map: 'ice' }, prevent_auto_create_lobby: true };
  const { body: refused } = await api.call('POST', '/matchmaker/lobbies/find', { token: game.public_token, body });
  return refused.ray_id;
}

async function fullestLobby(api: Api): Promise<string> {
  const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/matchmaker/lobbies`;
  const { rows } = await api.ok('GET', `${path}?order=fullest&count=1`, { token: game.cloud_token });
  return rows[0].lobby_id;
}

/** Writes a picture of a page, once a text is on it. */
async function takePicture(name: string, path: string, text: string): Promise<void> {
  const page = await openPage(path, browser);
  await page.getByText(text).first().waitFor();
  await page.waitForLoadState('networkidle');
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  const content = Buffer.from(data, 'base64');
  console.log(`${name}.webp: ${content.byteLength} bytes`);
  if (content.byteLength > BYTES_MAX) throw new Error(`${name}.webp has more than ${BYTES_MAX} bytes`);
  await Bun.write(join(FOLDER, `${name}.webp`), content);
}
