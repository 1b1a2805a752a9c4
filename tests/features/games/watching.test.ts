import { beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, type Person } from '../../support/people.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** A picture of one pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

const muster = shareService();
let game: TestGame;
let other: TestGame;
/** A member of the game's group only. */
let member: Person;
beforeAll(async () => {
  other = await makeGame(muster.api, muster.administrator_token);
});
beforeEach(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  member = await makeGuest(muster.api, game);
  await join(game, member);
});

const asOwner = (method: string, path: string, body: object = {}) =>
  muster.api.ok(method, path, { token: muster.administrator_token, ...(method === 'GET' ? {} : { body }) });

async function join({ group_id }: TestGame, { token }: Person): Promise<void> {
  const { code } = await asOwner('POST', `/group/groups/${group_id}/invites`);
  await muster.api.ok('POST', `/group/invites/${code}/consume`, { token });
}

const createVersion = async ({ game_id }: TestGame): Promise<string> => {
  const body = { display_name: crypto.randomUUID(), config: {} };
  return (await asOwner('POST', `/cloud/games/${game_id}/versions`, body)).version_id;
};

/** Uploads a logo of the game. */
async function setLogo(): Promise<void> {
  const upload = `${gamePath()}/logo-upload`;
  const file = { path: 'logo.png', content_length: PNG.length };
  const { upload_id, presigned_request } = await asOwner('POST', `${upload}/prepare`, file);
  await fetch(presigned_request.url, { method: 'PUT', body: PNG });
  await asOwner('POST', `${upload}/${upload_id}/complete`);
}

/** The views: the game, and the list of the member's games. */
const gamePath = () => `/cloud/games/${game.game_id}`;
const LIST = '/cloud/games';

/** Returns a view, and its answer after that index. */
async function watch(path: string, token = member.token) {
  const before = await muster.api.ok('GET', path, { token });
  const next = muster.api.ok('GET', `${path}?watch_index=${before.watch.index}`, { token });
  return { before, next };
}

/** Returns whether a request is still waiting after a later one was answered. */
async function isWaiting(request: Promise<unknown>): Promise<boolean> {
  const later = muster.api.get('/health/ready').then(() => true);
  return await Promise.race([request.then(() => false), later]);
}

/** Changes that may use a spare version, with what the view shows afterwards. */
type Change = [string, (spare_id: string) => Promise<unknown>, (answer: Answer['body']) => unknown, unknown];

describe('a watcher of a game sees', () => {
  const CHANGES: Change[] = [
    ['a new logo', setLogo, ({ game: { logo_url } }) => typeof logo_url, 'string'],
    ['a new version', () => createVersion(game), ({ game: { versions } }) => versions.length, 3],
    [
      'a new namespace',
      (version_id) =>
        asOwner('POST', `${gamePath()}/namespaces`, { display_name: 'Canary', name_id: 'canary', version_id }),
      ({ game: { namespaces } }) => namespaces.length,
      3,
    ],
    [
      'a namespace on another version',
      (version_id) => asOwner('PUT', `${gamePath()}/namespaces/${game.namespace_id}/version`, { version_id }),
      ({ game: { namespaces, versions } }) => namespaces[0].version_id === versions[1].version_id,
      true,
    ],
  ];
  for (const [what, change, look, seen] of CHANGES) {
    test(what, async () => {
      const spare_id = await createVersion(game);
      const { next } = await watch(gamePath());
      expect(await isWaiting(next)).toBe(true);
      await change(spare_id);
      expect(look(await next)).toBe(seen);
    });
  }

  test('nothing when another game changes, or when a change is refused', async () => {
    const { before, next } = await watch(gamePath());
    await createVersion(other);
    const { display_name } = before.game.versions[0];
    const refused = await muster.api.post(`${gamePath()}/versions`, game.cloud_token, { display_name, config: {} });
    expect(outcomeOf(refused)).toBe('400 VALIDATION_ERROR');
    expect(await isWaiting(next)).toBe(true);
    const version_id = await createVersion(game);
    expect((await next).game.versions[1].version_id).toBe(version_id);
  });
});

describe('a watcher of the list of games sees', () => {
  const CHANGES: Change[] = [
    [
      'a new game of its group',
      () => asOwner('POST', LIST, { display_name: 'Second', developer_group_id: game.group_id }),
      ({ games }) => games.length,
      2,
    ],
    ['a group that the member joins', () => join(other, member), ({ groups }) => groups.length, 2],
    [
      'a new name of its group',
      () => asOwner('POST', `/group/groups/${game.group_id}/profile`, { display_name: 'Renamed' }),
      ({ games, groups }) => JSON.stringify([games, groups]).match(/Renamed/g)?.length,
      2,
    ],
    [
      'that the member has left',
      () => asOwner('POST', `/group/groups/${game.group_id}/kick/${member.identity_id}`),
      ({ games, groups }) => [games, groups],
      [[], []],
    ],
    [
      'a logo of a game',
      setLogo,
      ({ games }) => games.map(({ logo_url }: { logo_url?: string }) => typeof logo_url),
      ['string'],
    ],
    [
      'a new member of its group',
      async () => join(game, await makeGuest(muster.api, game)),
      ({ groups }) => groups,
      [expect.objectContaining({ member_count: 3 })],
    ],
  ];
  for (const [what, change, look, seen] of CHANGES) {
    test(what, async () => {
      const { next } = await watch(LIST);
      expect(await isWaiting(next)).toBe(true);
      await change('');
      expect(look(await next)).toEqual(seen);
    });
  }

  test('nothing when other groups change', async () => {
    const { before, next } = await watch(LIST);
    await asOwner('POST', LIST, { display_name: 'Second', developer_group_id: other.group_id });
    await join(other, await makeGuest(muster.api, other));
    await asOwner('POST', `/group/groups/${other.group_id}/profile`, { bio: crypto.randomUUID() });
    expect(await isWaiting(next)).toBe(true);
    await asOwner('POST', `/group/groups/${game.group_id}/profile`, { bio: 'Ours' });
    expect((await next).games).toEqual(before.games);
  });
});

describe('a poll is answered at once', () => {
  test('if something has changed since its index', async () => {
    const { watch: seen } = await asOwner('GET', gamePath());
    const version_id = await createVersion(game);
    const { game: changed } = await asOwner('GET', `${gamePath()}?watch_index=${seen.index}`);
    expect(changed.versions[1].version_id).toBe(version_id);
  });

  test('for an invalid index, or that of another database', async () => {
    const before = await asOwner('GET', gamePath());
    for (const index of ['', '0', '1', 'nonsense', '-1', `00000000.${before.watch.index.split('.')[1]}`]) {
      expect(await asOwner('GET', `${gamePath()}?watch_index=${encodeURIComponent(index)}`)).toEqual(before);
    }
    const long = await muster.api.get(`${gamePath()}?watch_index=${'1'.repeat(65)}`, muster.administrator_token);
    expect(outcomeOf(long)).toBe('400 API_BAD_QUERY_PARAMETER');
  });

  test('to a caller without access to the game, with an index or without', async () => {
    const stranger = await makeGuest(muster.api, other);
    const { watch: seen } = await asOwner('GET', gamePath());
    const answer = await muster.api.get(`${gamePath()}?watch_index=${seen.index}`, stranger.token);
    expect(outcomeOf(answer)).toBe('404 GAME_NOT_FOUND');
  });
});

describe('several watchers', () => {
  test('get the same answer', async () => {
    const watching = await Promise.all(Array.from({ length: 30 }, () => watch(gamePath(), game.cloud_token)));
    const version_id = await createVersion(game);
    const answers = await Promise.all(watching.map(({ next }) => next));
    for (const answer of answers) expect(answer.game.versions[1].version_id).toBe(version_id);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  });

  test('of one caller are limited to 128', async () => {
    const { watch: seen } = await asOwner('GET', gamePath());
    const path = `${gamePath()}?watch_index=${seen.index}`;
    const polls = Array.from({ length: 160 }, () => muster.api.get(path, game.cloud_token));
    const refused = await Promise.any(polls);
    expect(outcomeOf(refused)).toBe('429 TOO_MANY_WATCHERS');
    expect(refused.headers.get('retry-after')).toBe('1');
    await waitFor(async () => (await countWaiting(polls)) === 128, 'all but 128 to be refused');
    await createVersion(game);
    const outcomes = (await Promise.all(polls)).map(outcomeOf);
    expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(128);
  });
});

async function countWaiting(requests: Promise<unknown>[]): Promise<number> {
  const waiting = await Promise.all(requests.map(isWaiting));
  return waiting.filter((is_waiting) => is_waiting).length;
}
