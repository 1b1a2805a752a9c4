import { beforeAll, describe, expect, spyOn, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { contractProblems } from '../../support/contract.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, type Person } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
let game: TestGame;
let guest: Person;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  guest = await makeGuest(muster.api, game);
});

const create = (body: object, token = muster.administrator_token) =>
  muster.api.post('/cloud/games', token, { display_name: 'Game', developer_group_id: game.group_id, ...body });
const read = async (game_id: string) =>
  (await muster.api.ok('GET', `/cloud/games/${game_id}`, { token: muster.administrator_token })).game;
const listGames = (token: string) => muster.api.ok('GET', '/cloud/games', { token });
const joinGroup = async ({ group_id }: TestGame, { token }: Person) => {
  const path = `/group/groups/${group_id}/invites`;
  const { code } = await muster.api.ok('POST', path, { token: muster.administrator_token });
  await muster.api.ok('POST', `/group/invites/${code}/consume`, { token });
};

describe('a game is refused', () => {
  const NAMES: [object, string[]][] = [
    [{ display_name: '' }, ['display-name.too-short']],
    [{ display_name: 'x'.repeat(25) }, ['display-name.too-long']],
    [{ display_name: 'x ' }, ['display-name.invalid']],
  ];
  for (const [names, problems] of NAMES) {
    test(`for its name: ${problems}`, async () => {
      const before = (await listGames(muster.administrator_token)).games.length;
      const answer = await create(names);
      expect(outcomeOf(answer)).toBe('400 VALIDATION_ERROR');
      expect(answer.body.metadata.errors.map(({ path }: { path: string[] }) => path.join('.'))).toEqual(problems);
      expect((await listGames(muster.administrator_token)).games).toHaveLength(before);
    });
  }

  test('for a missing group, and equally for callers outside the group', async () => {
    const missing = await create({ developer_group_id: crypto.randomUUID() });
    expect(outcomeOf(missing)).toBe('404 GROUP_NOT_FOUND');
    const foreign = await create({}, guest.token);
    expect(foreign.body).toEqual({ ...missing.body, ray_id: expect.any(String) });
  });

  test('for tokens of other kinds, and for an incomplete body', async () => {
    for (const token of [game.cloud_token, game.public_token, game.service_token]) {
      expect(outcomeOf(await create({}, token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
    for (const body of [{ display_name: 1 }, { developer_group_id: 'mine' }, { display_name: null }]) {
      expect(outcomeOf(await create(body))).toBe('400 API_BAD_BODY');
    }
  });
});

test('a game is refused to a group that has 1,000, also concurrently, unless the group has one of its name', async () => {
  const full = await makeGame(muster.api, muster.administrator_token);
  await muster.database.queries.execute(sql`
    insert into games (game_id, name_id, display_name, developer_group_id, create_ts)
    select gen_random_uuid(), 'many-' || number, 'Many', ${full.group_id}, now()
    from generate_series(1, 998) as number`);
  const createInFull = (body: object) => create({ developer_group_id: full.group_id, ...body });
  const answers = await Promise.all(['A', 'B', 'C'].map((display_name) => createInFull({ display_name })));
  expect(answers.map(outcomeOf).sort()).toEqual(['200', ...Array(2).fill('400 GROUP_TOO_MANY_GAMES')]);
  expect(outcomeOf(await createInFull({ display_name: 'Test game', if_missing: true }))).toBe('200');
  expect(outcomeOf(await createInFull({ display_name: 'Missing', if_missing: true }))).toBe('400 GROUP_TOO_MANY_GAMES');
});

test('the list of games has each group of a person, and each of their games, also with 1,000 others', async () => {
  const { token, identity_id } = await makeGuest(muster.api, game);
  const { queries } = muster.database;
  await queries.execute(sql`
    with earlier as (
      insert into groups (group_id, display_name, owner_identity_id, create_ts)
      select gen_random_uuid(), 'Team', ${identity_id}::uuid, '2020-01-01' from generate_series(1, 300)
      returning group_id
    ), joined as (
      insert into group_members (group_id, identity_id, join_ts)
      select group_id, ${identity_id}::uuid, '2020-01-01' from earlier
    )
    insert into games (game_id, name_id, display_name, developer_group_id, create_ts)
    select gen_random_uuid(), 'listed-' || row_number() over (), 'Early name', group_id, now()
    from earlier, generate_series(1, 4)`);
  await joinGroup(game, { token, identity_id });
  const { games, groups } = await listGames(token);
  expect([groups.length, games.length]).toEqual([301, 1_201]);
  expect(groups.map(({ group_id }: { group_id: string }) => group_id)).toContain(game.group_id);
  expect(games.map(({ game_id }: { game_id: string }) => game_id)).toContain(game.game_id);
});

describe("validating a game's names", () => {
  const validate = async (body: object) => {
    const { errors } = await muster.api.ok('POST', '/cloud/games/validate', { token: game.cloud_token, body });
    return errors.map(({ path }: { path: string[] }) => path.join('.'));
  };

  test('checks the rules of both', async () => {
    expect(await validate({ display_name: 'Game' })).toEqual([]);
    expect(await validate({ display_name: '' })).toEqual(['display-name.too-short']);
  });

  test('accepts any name id, since creating the game does not use it', async () => {
    const { name_id } = await read(game.game_id);
    for (const valid_name_id of [name_id, 'A'])
      expect(await validate({ display_name: 'Game', name_id: valid_name_id })).toEqual([]);
    expect(await validate({ display_name: 'Game', name_id: 'not-taken' })).toEqual([]);
  });
});

describe('a game', () => {
  test('starts with a version and the namespaces prod and staging on it', async () => {
    const { game_id } = (await create({ display_name: 'Two Tanks' })).body;
    const answer = await muster.api.ok('GET', `/cloud/games/${game_id}`, { token: muster.administrator_token });
    expect(contractProblems('CloudGamesGetGameByIdResponse', answer)).toEqual([]);
    const [version] = answer.game.versions;
    expect(answer.game).toEqual({
      game_id,
      create_ts: expect.any(String),
      name_id: 'two-tanks',
      display_name: 'Two Tanks',
      developer_group_id: game.group_id,
      total_player_count: 0,
      versions: [{ version_id: expect.any(String), display_name: '0.0.1', create_ts: expect.any(String) }],
      namespaces: [
        ['prod', 'Production'],
        ['staging', 'Staging'],
      ].map(([name_id, display_name]) => ({
        namespace_id: expect.any(String),
        name_id,
        display_name,
        version_id: version.version_id,
        create_ts: expect.any(String),
      })),
      available_regions: [
        {
          region_id: expect.any(String),
          region_name_id: 'local',
          provider: 'muster',
          provider_display_name: 'Muster',
          universal_region: 'unknown',
          region_display_name: expect.any(String),
        },
      ],
    });
  });

  test('has a name id of its own, also with an equal display name and concurrently', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => create({ display_name: 'Same', name_id: 'mine' })),
    );
    expect(answers.map(outcomeOf)).toEqual(Array(40).fill('200'));
    const games = await Promise.all(answers.map(({ body }) => read(body.game_id)));
    const name_ids = games.map(({ name_id }) => name_id);
    expect(name_ids).toContain('same');
    for (const name_id of name_ids) expect(name_id).toMatch(/^same(-[a-z0-9]{3})?$/);
    expect(new Set(name_ids).size).toBe(40);
  });

  test('is created together with others by a service that has just started', async () => {
    await using started = await openTestService();
    const { api, administrator_token: token } = started;
    const { groups } = await api.ok('GET', '/cloud/games', { token });
    const body = { display_name: 'First', developer_group_id: groups[0].group_id };
    // As many as the pool has connections.
    const answers = await Promise.all(Array.from({ length: 5 }, () => api.post('/cloud/games', token, body)));
    expect(answers.map(outcomeOf)).toEqual(Array(5).fill('200'));
  });

  test('with if_missing, is the one of the group with this name, also concurrently', async () => {
    const make = async (body: object = {}) =>
      (await create({ display_name: 'Only One', if_missing: true, ...body })).body.game_id;
    const made = await Promise.all(Array.from({ length: 8 }, () => make()));
    expect(new Set(made).size).toBe(1);
    const other_group = await makeGame(muster.api, muster.administrator_token);
    const others = await Promise.all([
      make({ if_missing: false }),
      make({ display_name: 'Only Two' }),
      make({ developer_group_id: other_group.group_id }),
    ]);
    expect(new Set([made[0], ...others]).size).toBe(4);
    expect(await make()).toBe(made[0]);
  });

  test('gets another name id when a random one is taken, but gives up after some tries', async () => {
    await create({ display_name: 'Dice' });
    const chance = spyOn(Math, 'random').mockReturnValue(0);
    try {
      const { body } = await create({ display_name: 'Dice' });
      expect((await read(body.game_id)).name_id).toBe('dice-aaa');
      const refused = await create({ display_name: 'Dice' });
      expect(outcomeOf(refused)).toBe('400 VALIDATION_ERROR');
      expect(refused.body.metadata.errors).toEqual([{ path: ['name-id', 'not-unique'] }]);
      for (let letter = 0; letter < 3; letter += 1) chance.mockReturnValueOnce(0);
      chance.mockReturnValue(0.999);
      const { body: another } = await create({ display_name: 'Dice' });
      // With three letters each: a name id of the first three would be taken.
      expect((await read(another.game_id)).name_id).toMatch(/^dice-(?!aaa)[a9]{3}$/);
    } finally {
      chance.mockRestore();
    }
  });

  test('may be created by any member of its group', async () => {
    const team = await makeGame(muster.api, muster.administrator_token);
    const member = await makeGuest(muster.api, team);
    await joinGroup(team, member);
    const { body } = await create({ display_name: 'Mine', developer_group_id: team.group_id }, member.token);
    expect((await read(body.game_id)).developer_group_id).toBe(team.group_id);
  });
});

describe('the list of games', () => {
  test("has the games of the caller's groups by name, and these groups", async () => {
    const team = await makeGame(muster.api, muster.administrator_token);
    const member = await makeGuest(muster.api, team);
    expect(await listGames(member.token)).toMatchObject({ games: [], groups: [] });
    await joinGroup(team, member);
    await create({ display_name: 'A game', developer_group_id: team.group_id });
    const list = await listGames(member.token);
    expect(contractProblems('CloudGamesGetGamesResponse', list)).toEqual([]);
    expect(list.games.map(({ display_name }: { display_name: string }) => display_name)).toEqual([
      'A game',
      'Test game',
    ]);
    const developer = {
      group_id: team.group_id,
      display_name: 'Test team',
      is_developer: true,
      external: { profile: `${muster.config.public_url}/hub/~groups/${team.group_id}` },
    };
    expect(list.games[1]).toEqual({
      game_id: team.game_id,
      name_id: (await read(team.game_id)).name_id,
      display_name: 'Test game',
      url: expect.stringMatching(/^http:\/\/[a-z0-9-]+\.sites\.localhost:\d+$/),
      developer,
      total_player_count: 0,
    });
    expect(list.groups).toEqual([
      {
        ...developer,
        bio: '',
        is_current_identity_member: true,
        member_count: 2,
        owner_identity_id: expect.any(String),
        publicity: 'open',
      },
    ]);
  });

  test('has one game for a cloud token, and can be watched with it too', async () => {
    const list = await listGames(game.cloud_token);
    expect(contractProblems('CloudGamesGetGamesResponse', list)).toEqual([]);
    expect(list.games.map(({ game_id }: { game_id: string }) => game_id)).toEqual([game.game_id]);
    expect(list.groups).toEqual([]);
    const next = muster.api.get(`/cloud/games?watch_index=${list.watch.index}`, game.cloud_token);
    await muster.api.ok('POST', `/cloud/games/${game.game_id}/versions`, {
      token: game.cloud_token,
      body: { display_name: 'Another', config: {} },
    });
    expect((await next).body.watch.index).not.toBe(list.watch.index);
  });
});

test('inspect: returns the owner of a token', async () => {
  const inspect = async (token: string) => (await muster.api.ok('GET', '/cloud/auth/inspect', { token })).agent;
  expect(await inspect(game.cloud_token)).toEqual({ game_cloud: { game_id: game.game_id } });
  expect(await inspect(guest.token)).toEqual({ identity: { identity_id: guest.identity_id } });
  const { token } = await muster.api.ok('POST', `/cloud/games/${game.game_id}/tokens/cloud`, {
    token: game.cloud_token,
  });
  expect(token).toStartWith('cloud.');
  expect(await inspect(token)).toEqual({ game_cloud: { game_id: game.game_id } });
});
