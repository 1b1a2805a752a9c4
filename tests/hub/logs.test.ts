import { beforeAll, describe, expect, test } from 'bun:test';
import { insertSamples } from '../../src/features/servers/usage/usage-samples-store.ts';
import { listServers } from '../support/game.ts';
import { find, makeControlledGame, seatOf, waitForFirstLobby } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);

/** Writes what logs have: colors, HTML, errors, and more lines than a first answer; a line for each request; ends by /end. */
const TALKATIVE_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
for (let line = 0; line < 600; line += 1) console.log('early line ' + line);
console.log('\\u001b[31mred\\u001b[0m and \\u001b[1;38;2;10;200;30mexact\\u001b[0m\\u001b[2K');
console.log('<script>alert(1)</script><img src=x onerror=alert(1)>');
console.error('a warning');
let lines = 0;
Bun.serve({ port: Number(PORT_game), fetch({ url }) {
  if (url.endsWith('/end')) process.kill(process.pid, 'SIGSEGV');
  lines += 1;
  console.log('later line ' + lines);
  return new Response();
} });
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

/** More lines than twice those that a page keeps. */
const LONG_LINES = 4_500;
const LONG_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
for (let line = 0; line < ${LONG_LINES}; line += 1) console.log('line ' + line);
await Bun.sleep(1_000);
console.error('an error');
Bun.serve({ port: Number(PORT_game), fetch: () => new Response() });
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: servers and logs', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  let lobby_id: string;
  let address: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { source: TALKATIVE_SOURCE });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
    const { body } = await find(muster, game);
    lobby_id = body.lobby.lobby_id;
    address = `http://${body.ports.game.host}`;
  });

  test('the list of servers links to the log of each, whose new lines are pushed', async () => {
    await using opened = await chromium.open(`${path}/servers`, game.cloud_token);
    const { page, problems } = opened;
    const row = page.locator('ul[aria-label="Servers"] > li').first();
    await row.getByText('running', { exact: true }).waitFor();
    await row.getByText(lobby_id.slice(-12)).waitFor();
    await takePictures(opened, 'servers');
    await row.getByRole('link').first().click();
    const log = page.getByRole('log');
    await log.getByText('a warning').waitFor();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await fetch(address);
    await log.getByText('later line 1').waitFor();
    expect(requests).toEqual([]);
    await takePictures(opened, 'server');
    expect(problems).toEqual([]);
  });

  test('the log shows colors, and everything else as text', async () => {
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page, problems } = opened;
    const log = page.getByRole('log');
    await log.getByText('<script>alert(1)</script><img src=x onerror=alert(1)>').waitFor();
    const red = log.locator('.ansi-red');
    expect(await red.textContent()).toBe('red');
    expect(await log.getByText('exact', { exact: true }).evaluate((node) => getComputedStyle(node).color)).toBe(
      'rgb(10, 200, 30)',
    );
    expect(await log.textContent()).not.toContain('\u001b');
    await page.getByLabel('Highlight').fill('alert');
    await log.locator('mark').first().waitFor();
    expect(await log.locator('mark').allTextContents()).toEqual(['alert', 'alert']);
    await takePictures(opened, 'lobby');
    expect(problems).toEqual([]);
  });

  test('a search finds a line from before the page was opened; the first line is there on demand', async () => {
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page } = opened;
    const log = page.getByRole('log');
    await log.getByText('a warning').waitFor();
    expect(await log.getByText('early line 7', { exact: true }).count()).toBe(0);
    const earlier = (await log.getByText(/^\d+ earlier lines are not shown here\. /).textContent()) ?? '';
    const std_out = log.locator('.line:not(.is-err)');
    expect((await std_out.count()) + Number.parseInt(earlier, 10)).toBeGreaterThanOrEqual(602);
    await page.getByLabel('Search the whole log').fill('line 77');
    await log.getByText('early line 77', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?search=line+77');
    await page.getByText(/^All \d+ lines were searched\.$/).waitFor();
    await log.locator('.line').filter({ hasText: 'early line 77' }).getByRole('link').click();
    await log.locator('.line.is-marked').getByText('early line 77', { exact: true }).waitFor();
    await log.getByText('early line 80', { exact: true }).waitFor({ state: 'attached' });
    expect(new URL(page.url()).search).toBe('?stream=std_out&line=77');
    // Other filters lead away from the line.
    await page.getByLabel('From').selectOption('beginning');
    await log.getByText('early line 0', { exact: true }).waitFor({ state: 'attached' });
    expect(new URL(page.url()).search).toBe('?stream=std_out&from=beginning');
    await page.goto(`${muster.config.public_url}${path}/lobbies/${lobby_id}?stream=std_out&line=77`);
    await log.locator('.line.is-marked').getByText('early line 77', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Show the latest lines' }).click();
    await log.getByText('later line').or(log.getByText('early line 599')).first().waitFor({ state: 'attached' });
    await page.getByLabel('Stream').selectOption('');
    await page.getByLabel('Search the whole log').fill('');
    await page.getByLabel('From').selectOption('beginning');
    await log.getByText('early line 0', { exact: true }).waitFor({ state: 'attached' });
    await page.getByLabel('Stream').selectOption('std_err');
    await log.getByText('early line 0', { exact: true }).waitFor({ state: 'detached' });
    await log.getByText('a warning').waitFor();
  });

  test('a search whose new lines end says why', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    const error = { code: 'SERVERS_SERVER_NOT_FOUND', message: 'There is no such server.' };
    await page.routeWebSocket('**/watch', (socket) => {
      const service = socket.connectToServer();
      socket.onMessage((message) => {
        const { type, id, path: watched = '' } = JSON.parse(String(message));
        if (type === 'subscribe' && watched.includes('search_text')) {
          socket.send(JSON.stringify({ type: 'error', id, error }));
        } else service.send(message);
      });
      service.onMessage((message) => socket.send(message));
    });
    await page.goto(await chromium.linkTo(`${path}/lobbies/${lobby_id}?search=line+77`, game.cloud_token));
    await page.getByRole('alert').getByText(error.message).waitFor();
    // What was found before stays.
    await page.getByRole('log').getByText('line 77').first().waitFor();
  });

  test('a log that is opened at a line keeps it, however much follows; later lines are there on demand', async () => {
    const long = await makeControlledGame(muster, { source: LONG_SOURCE });
    const { body } = await find(muster, long);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${long.game_id}`, { token: long.cloud_token });
    const at = `/hub/${its.name_id}/prod/lobbies/${body.lobby.lobby_id}`;
    await using opened = await chromium.open(`${at}?stream=std_out&line=50`, long.cloud_token);
    const { page, problems } = opened;
    const log = page.getByRole('log');
    const marked = log.locator('.line.is-marked').getByText('line 50', { exact: true });
    await marked.waitFor();
    await page.getByRole('button', { name: 'Later lines' }).waitFor();
    expect(await marked.isVisible()).toBe(true);
    await page.goto(`${muster.config.public_url}${at}?from=beginning`);
    await page.getByRole('button', { name: 'Later lines' }).waitFor();
    await log.getByText('line 0', { exact: true }).waitFor();
    // The error was written after the lines that are shown.
    expect(await log.getByText('an error', { exact: true }).count()).toBe(0);
    const lines = Array.from({ length: LONG_LINES }, (_, number) => `line ${number}`);
    const later = page.getByRole('button', { name: 'Later lines' });
    // The two streams are read beside each other, so the error may be there before the lines from before it.
    const shownFrom = async (first?: string) => {
      const [shown, buttons] = await page.getByLabel('Log', { exact: true }).evaluate((section) => {
        const textsOf = (selector: string) => [...section.querySelectorAll(selector)].map((one) => one.textContent);
        return [textsOf('.line > span'), textsOf('button')] as const;
      });
      const is_end = shown.at(-1) === 'an error' && shown.at(-2) === lines.at(-1);
      return shown[0] === first && (is_end || buttons.includes('Later lines')) ? shown : undefined;
    };
    const seen = await waitFor(() => shownFrom(lines[0]), 'the first lines');
    while (seen.at(-1) !== 'an error' && seen.length < LONG_LINES) {
      await later.click();
      seen.push(...(await waitFor(() => shownFrom(lines[seen.length]), 'later lines')));
    }
    expect(seen).toEqual([...lines, 'an error']);
    expect(problems).toEqual([]);
  });

  test('the whole log can be downloaded', async () => {
    await using opened = await chromium.open(`${path}/lobbies/${lobby_id}`, game.cloud_token);
    const { page } = opened;
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download std_out' }).click();
    const downloaded = await downloading;
    expect(downloaded.suggestedFilename()).toBe('server-log.txt');
    const text = await Bun.file((await downloaded.path()) ?? '').text();
    for (const line of ['early line 0', 'early line 599', '<script>alert(1)</script>']) expect(text).toContain(line);
    await page.getByLabel('Stream').selectOption('std_err');
    await page.getByRole('button', { name: 'Download std_err' }).waitFor();
  });

  test('a server shows what it used of what it may use, for each minute', async () => {
    // The service itself takes a sample at the end of each minute, which would be another one than those below.
    const minute_left_ms = 60_000 - (Date.now() % 60_000);
    if (minute_left_ms < 20_000) await Bun.sleep(minute_left_ms + 1_000);
    const measured = await makeControlledGame(muster);
    await seatOf(find(muster, measured));
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${measured.game_id}`, {
      token: measured.cloud_token,
    });
    const [server] = await listServers(muster, measured);
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/servers/${server.id}`, measured.cloud_token);
    const { page } = opened;
    await page.getByText('after its first minute').waitFor();
    const minute = Math.floor(Date.now() / 60_000);
    const samples = [1, 2, 3].map((number) => ({
      server_id: server.id,
      minute: minute - 3 + number,
      cpu_ms: number * 1_200,
      memory_bytes: number * 2 ** 24,
      received_bytes: 0,
      sent_bytes: 0,
    }));
    const { cpu, memory } = server.resources;
    const [first, ...later] = samples;
    await insertSamples(muster.database.queries, first ? [first] : []);
    const dot = await page
      .getByRole('img', { name: `16 of ${memory} MiB` })
      .locator('circle')
      .boundingBox();
    expect(dot?.width).toBeGreaterThan(2);
    for (const sample of later) await insertSamples(muster.database.queries, [sample]);
    const cores = `0.06 of ${(cpu / 1_000).toFixed(2)} cores`;
    await page.getByRole('img', { name: cores }).waitFor();
    await page.getByRole('img', { name: `48 of ${memory} MiB` }).waitFor();
    await takePictures(opened, 'server-usage');
  });

  test('the pages of the lobby and the server explain a crash in words', async () => {
    const { body } = await find(muster, game);
    await using opened = await chromium.open(`${path}/lobbies/${body.lobby.lobby_id}`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByText('open', { exact: true }).waitFor();
    await fetch(`http://${body.ports.game.host}/end`).catch(() => {});
    await page.getByText('The server was ended by the signal SIGSEGV (a segmentation fault).').waitFor();
    await page.getByText('failed', { exact: true }).waitFor();
    await takePictures(opened, 'lobby-crashed');
    await page.locator('dl a.mono').click();
    await page.getByRole('heading', { name: 'Server' }).waitFor();
    await page.getByText('The server was ended by the signal SIGSEGV (a segmentation fault).').waitFor();
    await page.getByText('ended', { exact: true }).first().waitFor();
    expect(problems).toEqual([]);
  });

  test('a server can be ended after a question', async () => {
    const other = await makeControlledGame(muster);
    await seatOf(find(muster, other));
    const other_lobby = await waitForFirstLobby(muster, other);
    const { game: its_game } = await muster.api.ok('GET', `/cloud/games/${other.game_id}`, {
      token: other.cloud_token,
    });
    await using opened = await chromium.open(`/hub/${its_game.name_id}/prod/servers`, other.cloud_token);
    const { page } = opened;
    await page.locator('ul[aria-label="Servers"] > li').getByRole('link').first().click();
    await page.getByRole('log').getByText(`this is ${other_lobby}`).waitFor();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await page.getByText('ended', { exact: true }).first().waitFor();
    await page.getByText('The server was ended by the signal SIGTERM').waitFor();
    await page.goto(`${muster.config.public_url}/hub/${its_game.name_id}/prod/servers`);
    await page.getByText('No server is running').waitFor();
    await page.getByText(`muster logs --game ${its_game.name_id} --namespace prod`).waitFor();
  });
});
