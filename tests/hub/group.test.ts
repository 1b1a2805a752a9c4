import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { makeGuest, makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: external.profile of a group', () => {
  let game: TestGame;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    const token = muster.administrator_token;
    const body = { display_name: 'Crab makers', bio: 'We make games\nabout <b>crabs</b>.' };
    await muster.api.ok('POST', `/group/groups/${game.group_id}/profile`, { token, body });
  });
  /** Returns where the link leads that a member reads of the group. */
  async function readProfilePath(token: string): Promise<string> {
    const { groups } = await muster.api.ok('GET', '/cloud/games', { token });
    const [group] = groups.filter(({ group_id }: { group_id: string }) => group_id === game.group_id);
    return group.external.profile.slice(muster.config.public_url.length);
  }

  test('leads a member to its page: name, bio and members', async () => {
    const member = await makeMember(muster, game);
    await using opened = await chromium.open(await readProfilePath(member.token), member.token);
    const { page, problems } = opened;
    await page.getByRole('heading', { name: 'Crab makers', exact: true }).waitFor();
    await page.getByText('about <b>crabs</b>.').waitFor();
    expect(await page.getByRole('region', { name: 'Members' }).getByRole('listitem').count()).toBe(2);
    expect(await page.getByRole('navigation').count()).toBe(0);
    await takePictures(opened, 'group');
    expect(problems).toEqual([]);
  });

  test('leads others to the same page, without its members and without any action', async () => {
    const member = await makeMember(muster, game);
    const guest = await makeGuest(muster.api, game);
    await using opened = await chromium.open(await readProfilePath(member.token), guest.token);
    await opened.page.getByRole('heading', { name: 'Crab makers', exact: true }).waitFor();
    expect(await opened.page.getByRole('region', { name: 'Members' }).count()).toBe(0);
    expect(await opened.page.locator('main').getByRole('button').count()).toBe(0);
  });

  test('of a group without a game, it says that an invitation is for people who have a token', async () => {
    const token = muster.administrator_token;
    const { group_id } = await muster.api.ok('POST', '/group/groups', { token, body: { display_name: 'No games' } });
    await using opened = await chromium.open(`/hub/~groups/${group_id}`);
    await opened.page.getByRole('button', { name: 'Invite someone' }).click();
    await opened.page.getByText('only someone who has a token can join:').waitFor();
  });

  test('of a group that does not exist, the page says so', async () => {
    await using opened = await chromium.open(`/hub/~groups/${crypto.randomUUID()}`);
    await opened.page.getByRole('heading', { name: 'There is no such group' }).waitFor();
  });
});
