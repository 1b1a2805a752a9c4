import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { deploy } from '../support/game.ts';
import { find, makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { openProvider } from '../support/provider.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const provider = openProvider();
const muster = shareService({ MUSTER_OUTBOUND_ALLOW: provider.allow });
const chromium = shareChromium(muster);
afterAll(() => provider[Symbol.asyncDispose]());
const KEY = 'key-of-the-header';
const TICKET = 'ticket-of-a-player';

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: verification and captcha', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    const verification_config = { url: provider.url, headers: { 'x-key': KEY } };
    const ranked = { taggable: true, actions: { find: { enabled: true, verification_config } } };
    game = await makeControlledGame(muster, { game_modes: { default: {}, ranked } });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  test('why shows the exchange with the verification server without secrets, and links to a replay', async () => {
    provider.answer = () => new Response(null, { status: 403 });
    const body = { game_modes: ['ranked'], tags: { map: 'ice' }, players: 3, verification_data: { ticket: TICKET } };
    const refused = await find(muster, game, body);
    expect(outcomeOf(refused)).toBe('400 MATCHMAKER_VERIFICATION_FAILED');
    await using opened = await chromium.open(`${path}/why/${refused.headers.get('rvt-ray-id')}`, game.cloud_token);
    const { page, problems } = opened;
    const exchange = page.getByRole('region', { name: 'Verification', exact: true });
    await exchange.getByText(`POST ${provider.url}`).waitFor();
    await exchange.getByText('status 403').waitFor();
    await exchange.getByText(`(text, ${TICKET.length} characters)`).waitFor();
    expect(await page.textContent('body')).not.toMatch(new RegExp(`${KEY}|${TICKET}`));
    await takePictures(opened, 'why-verification');

    provider.requests.length = 0;
    provider.answer = () => new Response(null, { status: 204 });
    await page.getByRole('link', { name: 'Ask the verification server again' }).click();
    const form = page.getByRole('form', { name: 'Try the verification' });
    expect(await form.getByLabel('Players', { exact: true }).inputValue()).toBe('3');
    await form.getByLabel('verification_data as JSON').fill('not json');
    await form.getByRole('button', { name: 'Ask the verification server' }).click();
    await page.getByText('The data are not valid JSON.').waitFor();
    await form.getByLabel('verification_data as JSON').fill(JSON.stringify({ ticket: 'another' }));
    await form.getByRole('button', { name: 'Ask the verification server' }).click();
    await form.getByText('It accepts the player.').waitFor();
    await form.getByText('status 204').waitFor();
    expect(provider.requests.map((sent) => [sent.body.game.game_mode_name_id, sent.body.game.tags])).toEqual([
      ['ranked', { map: 'ice' }],
    ]);
    expect(provider.requests[0]?.body.verification_data).toEqual({ ticket: 'another' });
    await takePictures(opened, 'settings-trials');
    expect(problems).toEqual([]);
  });

  test('a find that needs a proof of work is tried again with a solved one', async () => {
    const captcha = { requests_before_reverify: 0, verification_ttl: 60_000, pow: { difficulty: 1 } };
    await deploy(muster.api, game, { ...game.matchmaker, captcha });
    const refused = await find(muster, game);
    expect(outcomeOf(refused)).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
    await using opened = await chromium.open(`${path}/why/${refused.headers.get('rvt-ray-id')}`, game.cloud_token);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The request got a seat.').waitFor();
    await page.goto(`${muster.config.public_url}${path}/settings`);
    const verification = page.getByRole('form', { name: 'Try the verification' });
    await waitFor(async () => (await verification.getByLabel('Game mode').inputValue()) !== '', 'a game mode');
    const form = page.getByRole('form', { name: 'Try the captcha' });
    await form.getByRole('button', { name: 'Ask the providers' }).click();
    await form.getByText('need no keys').waitFor();
    expect(problems).toEqual([]);
  });
});
