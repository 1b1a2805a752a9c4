import { beforeAll, describe, expect, test } from 'bun:test';
import { connectGameServer, find, makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { type HubPage, shareChromium } from '../support/hub/hub-page.ts';
import { makeMember } from '../support/people.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const HTML = '<script>alert(1)</script><img src=x onerror=alert(1)>';
/** Turns the reading direction, rings a bell, clears a terminal, and is invisible. */
const CONTROLS = '\u202eevil\u2066\u0007\u001b[2J\u200b\u0085';
const HOSTILE_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
const text = ${JSON.stringify(HTML)} + ' a log line ' + ${JSON.stringify(CONTROLS)};
Bun.serve({ port: Number(PORT_game), fetch: () => Response.json(process.env) });
console.log(text);
console.error(text + '\\u001b]8;;javascript:alert(1)\\u0007link\\u001b]8;;\\u0007');
process.stdout.write(Buffer.from([0xff, 0xfe, 0x00, 0x0a]));
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: hostile text', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  let lobby_id: string;
  let server_id: string;
  let ray_id: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster, {
      source: HOSTILE_SOURCE,
      game_modes: { default: { taggable: true, max_players: 4 } },
    });
    const token = game.cloud_token;
    const { api, administrator_token } = muster;
    const tags = { [HTML]: HTML, control: CONTROLS };
    const answer = await find(muster, game, { tags });
    expect(outcomeOf(answer)).toBe('200');
    lobby_id = answer.body.lobby.lobby_id;
    ray_id = answer.headers.get('rvt-ray-id') ?? '';
    const server = await connectGameServer(muster, game, lobby_id);
    await server.setState({ [HTML]: [HTML, CONTROLS] });
    ({ server_id } = server);
    const member = await makeMember(muster, game);
    const named = (text: string) => text.slice(0, 24);
    for (const text of [named(HTML), 'x']) {
      await api.call('POST', `/group/groups/${game.group_id}/profile`, {
        token: administrator_token,
        body: { display_name: text, bio: HTML },
      });
      await api.call('POST', '/identity/identities/self/profile', {
        token: member.token,
        body: { display_name: text },
      });
    }
    const config = { matchmaker: { ...game.matchmaker, game_modes: { default: { taggable: true, max_players: 5 } } } };
    await api.call('POST', `/cloud/games/${game.game_id}/versions`, { token, body: { display_name: HTML, config } });
    const environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
    await api.call('PATCH', `${environment}/builds/${game.build_id}/tags`, {
      token,
      body: { tags: { [named(HTML)]: HTML } },
    });
    const image_file = { path: `${HTML}.js`, content_length: 10 };
    await api.call('POST', `${environment}/builds/prepare`, { token, body: { name: HTML, image_file } });
    await api.call('PUT', `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}/closed`, {
      token,
      body: { is_closed: true },
      headers: { 'user-agent': HTML },
    });
    const { game: read } = await api.ok('GET', `/cloud/games/${game.game_id}`, { token });
    path = `/hub/${read.name_id}/prod`;
  });

  /** Fails if a text became an element or a script, or if anything was loaded or reported. */
  async function expectOnlyText({ page, problems }: HubPage): Promise<void> {
    const made = await page.evaluate(() => ({
      scripts: [...document.querySelectorAll('script')].filter((one) => one.src === '').length,
      pictures: document.querySelectorAll('img[src="x"], [onerror]').length,
      links: [...document.querySelectorAll('a')].filter((one) => one.protocol === 'javascript:').length,
    }));
    expect(made).toEqual({ scripts: 0, pictures: 0, links: 0 });
    expect(problems).toEqual([]);
  }

  test('of names, tags, states, logs, builds and callers is text on every page', async () => {
    await using opened = await chromium.open(path);
    const { page } = opened;
    let dialogs = 0;
    page.on('dialog', async (dialog) => {
      dialogs += 1;
      await dialog.dismiss();
    });
    const pages: [path: string, shows: string][] = [
      ['', lobby_id.slice(-12)],
      [`/lobbies/${lobby_id}`, HTML],
      ['/servers', server_id.slice(-12)],
      [`/servers/${server_id}`, 'a log line'],
      ['/why?show=all', HTML],
      [`/why/${ray_id}`, HTML],
      ['/versions', HTML],
      ['/settings', 'Members'],
      ['/changes', 'setLobbyClosedByDeveloper'],
      [`/why/${encodeURIComponent(HTML)}`, 'There is no such'],
      [`/servers?find=${encodeURIComponent(HTML)}&status=${encodeURIComponent(HTML)}`, 'server'],
      [`/lobbies/${lobby_id}?search=${encodeURIComponent(HTML)}&highlight=${encodeURIComponent('<')}`, 'a log line'],
      [`/settings?kind=${encodeURIComponent(HTML)}&tags=${encodeURIComponent(HTML)}`, 'Members'],
    ];
    for (const [one, shows] of pages) {
      await page.goto(`${muster.config.public_url}${path}${one}`);
      await page.locator('main').getByText(shows).first().waitFor({ state: 'attached' });
      await expectOnlyText(opened);
    }
    expect(dialogs).toBe(0);
  });

  test('control characters of a log do not reach the lines beside them', async () => {
    await using opened = await chromium.open(`${path}/servers/${server_id}`);
    const log = opened.page.getByRole('log');
    await log.getByText('a log line').first().waitFor();
    expect(await log.textContent()).not.toContain('\u001b');
    // Each line is a paragraph of its own, which turns no other.
    const displays = await log
      .locator('.line > *')
      .evaluateAll((all) => all.map((one) => getComputedStyle(one).display));
    expect(new Set(displays)).toEqual(new Set(['block']));
    await expectOnlyText(opened);
  });

  test('a palette, an invitation and a log-in with it in the address show it as text', async () => {
    await using opened = await chromium.open(`/?invite=${encodeURIComponent(HTML)}`);
    await opened.page.getByRole('alert').first().waitFor();
    await opened.page.keyboard.press('Control+k');
    await opened.page.getByRole('combobox').fill(HTML);
    await expectOnlyText(opened);
  });
});
