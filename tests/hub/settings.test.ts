import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { makeGuest, makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: settings', () => {
  let game: TestGame;
  let path: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod/settings`;
  });
  const configOf = async () => {
    const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
    return (await muster.api.ok('GET', namespace, { token: game.cloud_token })).namespace.config;
  };

  test('limits, the users of the site and who may see it can be changed', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('Lobbies at once').fill('17');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('The limits are set.').waitFor();
    expect((await configOf()).matchmaker.lobby_count_max).toBe(17);
    const site = page.getByRole('region', { name: 'Site' });
    await site.getByLabel('User', { exact: true }).fill('ana');
    await site.getByLabel('Password', { exact: true }).fill('a secret of ana');
    await site.getByRole('button', { name: 'Add user' }).click();
    await site.getByRole('list', { name: 'Users of the site' }).getByText('ana').waitFor();
    await site.getByLabel('Ask visitors for a user and password').click();
    await page.getByText('The site asks for a user and password.').waitFor();
    expect((await configOf()).cdn).toMatchObject({ auth_type: 'basic', auth_user_list: [{ user: 'ana' }] });
    await takePictures(opened, 'settings');
    await site.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('ana can no longer see the site.').waitFor();
    expect((await configOf()).cdn.auth_user_list).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('a limit that the form was not asked to change stays what someone else has set', async () => {
    const limits = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/mm-config`;
    const token = game.cloud_token;
    await muster.api.ok('POST', limits, { token, body: { lobby_count_max: 20, max_players: 8 } });
    await using opened = await chromium.open(path, token);
    const { page, problems } = opened;
    const lobbies = page.getByLabel('Lobbies at once');
    await lobbies.waitFor();
    await muster.api.ok('POST', limits, { token, body: { lobby_count_max: 30, max_players: 8 } });
    await page.getByLabel('Players of one address').fill('5');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('The limits are set.').waitFor();
    expect((await configOf()).matchmaker).toMatchObject({ lobby_count_max: 30, max_players_per_client: 5 });
    expect(await lobbies.inputValue()).toBe('30');
    expect(problems).toEqual([]);
  });

  test('a user is removed also while the removal of another one is under way', async () => {
    const own = await makeGame(muster.api, muster.administrator_token);
    const namespace = `/cloud/games/${own.game_id}/namespaces/${own.namespace_id}`;
    const password = await Bun.password.hash('a secret', { algorithm: 'bcrypt', cost: 10 });
    for (const user of ['ana', 'ben']) {
      await muster.api.ok('POST', `${namespace}/auth-user`, { token: own.cloud_token, body: { user, password } });
    }
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/settings`, own.cloud_token);
    const { page, problems } = opened;
    const released = Promise.withResolvers<void>();
    await page.route('**/auth-user/ana', async (route) => {
      await released.promise;
      await route.continue();
    });
    for (const user of ['ana', 'ben']) {
      await page.getByRole('button', { name: `Remove ${user}` }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    }
    await page.getByText('ben can no longer see the site.').waitFor();
    // A question about the one that is under way would be answered for nothing.
    expect(await page.getByRole('button', { name: 'Remove ana' }).isDisabled()).toBe(true);
    released.resolve();
    await page.getByText('ana can no longer see the site.').waitFor();
    await page.getByRole('button', { name: 'Remove' }).waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  });

  test('a domain that is not proven is refused with the message of the service', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByLabel('Domain', { exact: true }).fill('not a domain');
    await page.getByRole('button', { name: 'Add domain' }).click();
    await page.getByRole('alert').getByText('CDN_INVALID_DOMAIN').waitFor();
  });

  test('a token is made, shown once and explained; a revoked one is refused', async () => {
    await using opened = await chromium.open(path);
    const { page, problems } = opened;
    await page.getByRole('button', { name: 'Cloud token' }).click();
    const dialog = page.getByRole('dialog');
    const token = (await dialog.locator('code').textContent()) ?? '';
    await takePictures(opened, 'settings-token');
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByText(token).waitFor({ state: 'detached' });
    await page.waitForFunction(() => document.activeElement?.textContent === 'New cloud token');
    await page.getByLabel('What is this token?').fill(token);
    await page.getByText('Cloud: for tools that act for one game.').waitFor();
    await page
      .getByText(String(new Date().getFullYear() + 1))
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Ask the service' }).click();
    await page.getByText('accepts it').waitFor();
    await page.getByLabel('What is this token?').fill(`${token}…`);
    await page.getByRole('button', { name: 'Ask the service' }).click();
    await page.getByText('refuses it: This is not a Muster token').waitFor();
    // One whose kind the call does not accept.
    const service = game.service_token;
    await page.getByLabel('What is this token?').fill(service);
    await page.getByRole('button', { name: 'Ask the service' }).click();
    await page.getByText('accepts it').waitFor();
    // Another token has no verdict yet.
    const link = await muster.api.ok('POST', '/cloud/devices/links');
    await page.getByLabel('What is this token?').fill(link.device_link_token);
    await page.getByText('Device link: for a tool that waits for a cloud token.').waitFor();
    expect(await page.getByText('accepts it').count()).toBe(0);
    // Whether the link was used, this page cannot tell.
    await page.getByRole('button', { name: 'Ask the service' }).click();
    await page.getByText('it is valid. Whether the lobby, seat or other thing that it is for').waitFor();
    await page.getByLabel('What is this token?').fill(token);
    await page.getByRole('button', { name: 'Revoke all' }).click();
    await dialog.getByRole('button', { name: 'Revoke all' }).click();
    await page.getByText('All cloud and service tokens and share links of the game are revoked.').waitFor();
    for (const revoked of [token, service]) {
      await page.getByLabel('What is this token?').fill(revoked);
      await page.getByRole('button', { name: 'Ask the service' }).click();
      await page.getByText('refuses it:').waitFor();
    }
    await page.getByLabel('What is this token?').fill('nonsense');
    await page.getByText('This is not a Muster token.').waitFor();
    expect(problems).toEqual([]);
  });

  test('share links that cannot be read are not called missing', async () => {
    await using opened = await chromium.openPage();
    const { page } = opened;
    await page.route('**/shares', (route) =>
      route.fulfill({ status: 500, body: '{"code":"ERROR","message":"The links cannot be read."}' }),
    );
    await page.goto(await chromium.linkTo(path, muster.administrator_token));
    await page.getByRole('alert').getByText('The links cannot be read.').waitFor();
  });

  test('members invite, and the owner removes; a tool of the game sees no members', async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    const member = await makeMember(muster, other);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${other.game_id}`, { token: other.cloud_token });
    const settings = `/hub/${its.name_id}/prod/settings`;
    await using as_tool = await chromium.open(settings, other.cloud_token);
    await as_tool.page.getByRole('region', { name: 'Tokens' }).waitFor();
    expect(await as_tool.page.getByRole('button', { name: 'Revoke all' }).count()).toBe(0);
    await using as_member = await chromium.open(settings, member.token);
    const members = as_member.page.getByRole('region', { name: 'Members' });
    const own = members.getByRole('listitem').filter({ has: as_member.page.getByText('you', { exact: true }) });
    const number = (await own.getByText('#').textContent()) ?? '';
    expect(number).toMatch(/^#\d+$/);
    expect(await members.getByRole('button', { name: 'Remove' }).count()).toBe(0);
    // An attempt without its link makes no invitation.
    let invitations = 0;
    as_member.page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/invites')) invitations += 1;
    });
    await as_member.page.route('**/cloud/bootstrap', (route) =>
      route.fulfill({ status: 400, json: { message: 'The address is not known.' } }),
    );
    await members.getByRole('button', { name: 'Invite someone' }).click();
    await as_member.page.getByText('The address is not known.').waitFor();
    expect(invitations).toBe(0);
    await as_member.page.unroute('**/cloud/bootstrap');
    // The page may be open at another address of the service than the public one, to which links for other people lead.
    const public_url = 'https://muster.example';
    await as_member.page.route('**/cloud/bootstrap', async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, origins: { ...answer.origins, hub: public_url } } });
    });
    await members.getByRole('button', { name: 'Invite someone' }).click();
    const link = new URL((await members.getByText('/?invite=').textContent()) ?? '');
    expect(link.origin).toBe(public_url);
    await as_member.page.getByText('Someone who has no token yet gets one there:').waitFor();
    await using with_tool = await chromium.open(link.pathname + link.search, other.cloud_token);
    await with_tool.page.getByText('You are logged in with a token of a game. To join a group, log out').waitFor();
    const invited = await makeGuest(muster.api, other);
    await using as_invited = await chromium.open(link.pathname + link.search, invited.token);
    await as_invited.page.getByRole('button', { name: 'Join' }).click();
    await as_invited.page.getByText('You are a member of').waitFor();
    expect(as_invited.page.url()).not.toContain('invite');
    // The link has been used.
    await members.getByText('/?invite=').waitFor({ state: 'detached' });
    await using as_owner = await chromium.open(settings);
    const { page } = as_owner;
    const listed = page.getByRole('region', { name: 'Members' }).getByRole('listitem');
    await listed.getByRole('button', { name: 'Remove' }).nth(1).waitFor();
    await listed.filter({ hasText: number }).getByRole('button', { name: 'Remove' }).click();
    const question = page.getByRole('dialog');
    await question.getByText("All cloud and service tokens and share links of the group's games are revoked").waitFor();
    await question.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('is no longer a member.').waitFor();
    await as_member.page.getByRole('heading', { name: 'There is no such game' }).waitFor();
  });

  test('someone without a token who is invited becomes a person, keeps the token, and joins', async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${other.game_id}`, { token: other.cloud_token });
    await using as_owner = await chromium.open(`/hub/${its.name_id}/prod/settings`);
    await as_owner.page.getByRole('button', { name: 'Invite someone' }).click();
    const link = (await as_owner.page.getByText('/?invite=').textContent()) ?? '';
    await using visited = await chromium.openPage();
    const { page, problems } = visited;
    await page.goto(link);
    await page.getByRole('heading', { name: 'You are invited to a group' }).waitFor();
    await takePictures(visited, 'invited');
    await page.getByLabel('Your name').fill('x'.repeat(100));
    await page.getByRole('button', { name: 'I am new here' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Your name').fill('Ana');
    await page.getByRole('button', { name: 'I am new here' }).click();
    await page.getByRole('heading', { name: 'Keep your token' }).waitFor();
    const token = (await page.locator('code').first().textContent()) ?? '';
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('button', { name: 'Join' }).click();
    await page.getByText('You are a member of').waitFor();
    await page.getByRole('link', { name: its.display_name }).waitFor();
    expect(page.url()).toBe(`${muster.config.public_url}/`);
    await as_owner.page.getByRole('region', { name: 'Members' }).getByText('Ana').waitFor();
    // The token leads back to the same person.
    const profile = await muster.api.ok('GET', '/identity/identities/self/profile', { token });
    expect(profile.identity.display_name).toBe('Ana');
    expect(problems).toEqual([]);
  });
});
