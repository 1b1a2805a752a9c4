import { beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { TIERS } from '../../../src/features/versions/tiers.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { openTestService } from '../../support/service.ts';
import { countOutcomes, shareService } from '../../support/suite.ts';

const muster = shareService();
let builder: TestGame;
let build_id: string;
let game: TestGame;
beforeAll(async () => {
  builder = await makeGame(muster.api, muster.administrator_token);
  build_id = await uploadScript(muster.api, builder, 'setInterval(() => {}, 1e9)');
});
beforeEach(() => {
  game = builder;
});

const DAY_MS = 24 * 3_600_000;

const versionsOf = ({ game_id }: TestGame) => `/cloud/games/${game_id}/versions`;
const create = (display_name: string, config: unknown) =>
  muster.api.post(versionsOf(game), game.cloud_token, { display_name, config });
const validate = (display_name: string, config: unknown) =>
  muster.api.post(`${versionsOf(game)}/validate`, game.cloud_token, { display_name, config });
const listNames = async (): Promise<string[]> => {
  const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  return answer.game.versions.map(({ display_name }: { display_name: string }) => display_name);
};
const paths = (errors: { path: string[] }[]) => errors.map(({ path }) => path.join('.'));
const anyName = () => `Version ${crypto.randomUUID()}`;
/** A version that can be created, except for what is changed. */
const withMode = (mode: object, general: object = {}) => ({
  matchmaker: { docker: { image_id: build_id }, game_modes: { default: mode }, ...general },
});

describe('versions: a setting', () => {
  test('that this release does not support is refused, not ignored: lobby groups', async () => {
    const name = anyName();
    const message = 'This release does not support config.matchmaker.lobby_groups. Use game_modes instead.';
    expect(await create(name, { matchmaker: { lobby_groups: [] } })).toMatchObject({
      status: 400,
      body: { code: 'FEATURE_DISABLED', message },
    });
    expect(await listNames()).not.toContain(name);
  });

  for (const name of ['verification', 'verification_config']) {
    test(`of external verification (${name}) is accepted, and read as it was written, but for its secret`, async () => {
      const verification = { url: 'https://example.com/verify', headers: { 'x-key': 'y' } };
      const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
      const onAll = (verification: object) =>
        Object.fromEntries(
          ['find', 'join', 'create'].map((action) => [action, { enabled: true, [name]: verification }]),
        );
      const { status, body } = await create(anyName(), withMode({ actions: onAll({ ...verification, secret }) }));
      expect(status).toBe(200);
      const read = await muster.api.ok('GET', `${versionsOf(game)}/${body.version_id}`, { token: game.cloud_token });
      const { config } = read.version;
      expect(config.matchmaker.game_modes.default.actions).toEqual(onAll({ ...verification, secret: '' }));
      // A copy of a version that was read lacks the secret, and is refused instead of signed without one.
      const copied = await create(anyName(), config);
      expect(paths(copied.body.metadata.errors)).toEqual(
        ['find', 'join', 'join'].map(
          (action) => `config.matchmaker.game-modes.*default*.${action}-config.verification-config.secret.invalid`,
        ),
      );
    });
  }

  test('of idle lobbies, find and create is accepted', async () => {
    const mode = { idle_lobbies: { min: 0, max: 3 }, actions: { find: { enabled: true }, create: { enabled: true } } };
    expect((await create(anyName(), withMode(mode, { idle_lobbies: { min: 0, max: 0 } }))).status).toBe(200);
  });
});

test('versions: a game has 10,000 at most, also concurrently', async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  await muster.database.queries.execute(sql`
    insert into versions (version_id, game_id, display_name, config, create_ts)
    select gen_random_uuid(), ${game.game_id}, 'many ' || number, '{}', now() from generate_series(1, 9998) as number`);
  const answers = await Promise.all([1, 2, 3].map(() => create(anyName(), {})));
  expect(countOutcomes(answers)).toEqual({ '200': 1, '400 GAME_TOO_MANY_VERSIONS': 2 });
  expect(await listNames()).toHaveLength(10_000);
});

test('versions: a process remembers only some large ones', async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  const config = { engine: 'x'.repeat(900_000) };
  const ids: string[] = [];
  for (let made = 0; made < 20; made += 1) ids.push((await create(anyName(), config)).body.version_id);
  const [first = '', ...others] = ids;
  const nameOf = async (version_id: string) =>
    (await muster.api.ok('GET', `${versionsOf(game)}/${version_id}`, { token: game.cloud_token })).version.display_name;
  const before = await nameOf(first);
  await muster.database.queries.execute(sql`
    update versions set display_name = 'read again' where version_id = ${first}`);
  expect(await nameOf(first)).toBe(before);
  for (const version_id of others) await nameOf(version_id);
  expect(await nameOf(first)).toBe('read again');
});

describe('versions: an invalid configuration is refused with its path:', () => {
  const CASES: [unknown, string][] = [
    [undefined, '"config"'],
    [null, '"config"'],
    [[], '"config"'],
    [{ matchmaker: 1 }, '"config.matchmaker"'],
    [{ matchmaker: { max_players: -1 } }, '"config.matchmaker.max_players"'],
    [{ matchmaker: { max_players: 1.5 } }, '"config.matchmaker.max_players"'],
    [{ matchmaker: { max_players: 2 ** 32 } }, '"config.matchmaker.max_players"'],
    [{ matchmaker: { max_players: '4' } }, '"config.matchmaker.max_players"'],
    [{ matchmaker: { game_modes: { 'a\nb': null } } }, '"config.matchmaker.game_modes.a\nb"'],
    [{ matchmaker: { game_modes: { a: { docker: { env: { 'A\nB': 1 } } } } } }, 'docker.env.A\nB"'],
    [{ matchmaker: { docker: { image_id: 'mine' } } }, '"config.matchmaker.docker.image_id"'],
    [{ matchmaker: { docker: { ports: { a: { port: 65_536 } } } } }, 'docker.ports.a.port"'],
    [{ matchmaker: { docker: { ports: { a: { protocol: 'quic' } } } } }, 'docker.ports.a.protocol"'],
    [{ matchmaker: { game_modes: { a: { actions: { find: {} } } } } }, 'a.actions.find.enabled"'],
    [{ matchmaker: { docker: { args: Array(257).fill('x') } } }, '"config.matchmaker.docker.args"'],
  ];
  for (const [config, path] of CASES) {
    test(JSON.stringify(config)?.slice(0, 60) ?? 'nothing', async () => {
      const { status, body } = await create(anyName(), config);
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'API_BAD_BODY' });
      expect(body.message).toContain(path);
    });
  }
});

describe('versions: a broken rule is refused', () => {
  test('with every path; validating reports the same and creates nothing', async () => {
    const config = withMode({ max_players: 0, max_players_direct: 1, tier: 'huge' });
    const problems = [
      'display-name.too-short',
      'config.matchmaker.game-modes.*default*.player-counts.max-players-normal.too-low',
      'config.matchmaker.game-modes.*default*.player-counts.max-players-party.too-low',
      'config.matchmaker.game-modes.*default*.regions.*local*.tier-name-id-invalid',
    ];
    const advice = ['at least one character', '1 to 256', '1 to 256', `one of ${[...TIERS.keys()].join(', ')}`];
    const explained = problems.map((problem, index) => `${problem} (${advice[index]})`);
    const before = await listNames();
    const validated = await validate('', config);
    expect(validated.status).toBe(200);
    expect(paths(validated.body.errors)).toEqual(problems);
    const { status, body } = await create('', config);
    expect({ status, code: body.code, message: body.message }).toEqual({
      status: 400,
      code: 'VALIDATION_ERROR',
      message: `The request has invalid content: ${explained.join(', ')}.`,
    });
    expect(paths(body.metadata.errors)).toEqual(problems);
    expect(await listNames()).toEqual(before);
  });

  test('for builds that are missing, not complete, or of another game', async () => {
    const builds = `/games/${builder.game_id}/environments/${builder.namespace_id}/builds`;
    const { build: unfinished } = await muster.api.ok('POST', `${builds}/prepare`, {
      token: builder.cloud_token,
      body: { name: 'Unfinished', kind: 'javascript', image_file: { path: 'server.ts', content_length: 1 } },
    });
    const no_build = ['config.matchmaker.game-modes.*default*.no-build'];
    for (const image_id of [unfinished, crypto.randomUUID()]) {
      const { body } = await validate(anyName(), withMode({ docker: { image_id } }));
      expect(paths(body.errors)).toEqual(no_build);
    }
    game = await makeGame(muster.api, muster.administrator_token);
    expect(paths((await validate(anyName(), withMode({}))).body.errors)).toEqual(no_build);
    expect((await create(anyName(), withMode({}))).body.code).toBe('VALIDATION_ERROR');
  });

  test('for the name of another version of the game, also concurrently', async () => {
    const name = anyName();
    const answers = await Promise.all(Array.from({ length: 6 }, () => create(name, {})));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { body } of answers.filter(({ status }) => status !== 200)) {
      expect(body.message).toContain('another version of this game has that name, so choose another');
      expect(paths(body.metadata.errors)).toEqual(['display-name.not-unique']);
    }
    expect(paths((await validate(name, {})).body.errors)).toEqual(['display-name.not-unique']);
    game = await makeGame(muster.api, muster.administrator_token);
    expect((await create(name, {})).status).toBe(200);
  });
});

describe('a version', () => {
  test('is stored as it was sent, without unknown members', async () => {
    const name = anyName();
    const config = {
      scripts: { build: 'make' },
      engine: { unity: {} },
      identity: { custom_display_names: [] },
      kv: {},
      matchmaker: {
        dev_hostname: 'localhost',
        max_players: 4,
        regions: { local: { tier: 'basic-1d4' } },
        game_modes: {
          default: { listable: false, actions: { create: { enabled: true, max_lobbies_per_identity: 1 } } },
        },
        docker: {
          image_id: build_id,
          dockerfile: 'Dockerfile',
          env: { A: 'x' },
          ports: { game: { port: 80, protocol: 'http', dev_port: 8080 } },
        },
      },
    };
    const { body } = await create(name, { ...config, nonsense: 1, matchmaker: { ...config.matchmaker, nonsense: 1 } });
    const { version } = await muster.api.ok('GET', `${versionsOf(game)}/${body.version_id}`, {
      token: game.cloud_token,
    });
    expect(version).toEqual({
      version_id: body.version_id,
      create_ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      display_name: name,
      config,
    });
  });

  test('exists for its own game only', async () => {
    const { body } = await create(anyName(), {});
    game = await makeGame(muster.api, muster.administrator_token);
    for (const version_id of [body.version_id, crypto.randomUUID()]) {
      expect(await muster.api.get(`${versionsOf(game)}/${version_id}`, game.cloud_token)).toMatchObject({
        status: 404,
        body: { code: 'VERSION_NOT_FOUND' },
      });
    }
  });

  test('comes after an empty one, with which each game starts', async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    expect(await listNames()).toEqual(['0.0.1']);
    await create('second', {});
    await create('third', {});
    expect(await listNames()).toEqual(['0.0.1', 'second', 'third']);
  });
});

test('versions: of more than 10,000 the newest are listed', async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  await muster.database.queries.execute(sql`
    insert into versions (version_id, game_id, display_name, config, create_ts)
    select gen_random_uuid(), game_id, 'many ' || number, config, create_ts + number * interval '1 ms'
    from versions, generate_series(1, 10000) as number where game_id = ${game.game_id}`);
  const names = await listNames();
  expect([names.length, names[0], names.at(-1)]).toEqual([10_000, 'many 1', 'many 10000']);
});

test('versions: a reserved name is free: the day, and the number after those of the day', async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  const today = () => muster.clock.now().toISOString().slice(0, 10).replaceAll('-', '.');
  expect(await reserve(muster, game)).toBe(`${today()}-1`);
  for (const name of [`${today()}-1`, `${today()}-9`, `${today()}-99999999999`, `${today()}-x`]) {
    expect((await create(name, {})).status).toBe(200);
  }
  expect(await reserve(muster, game)).toBe(`${today()}-10`);
  muster.clock.advance(DAY_MS);
  expect(await reserve(muster, game)).toBe(`${today()}-1`);
});

test('versions: each name is reserved once, by any process, and a version can then have it', async () => {
  const own = await makeGame(muster.api, muster.administrator_token);
  const other = await makeGame(muster.api, muster.administrator_token);
  await using other_machine = await openTestService({}, { database_of: muster });
  const names = await Promise.all(
    Array.from({ length: 20 }, (_, index) => reserve(index % 2 ? muster : other_machine, own)),
  );
  expect(new Set(names).size).toBe(20);
  expect(names).not.toContain(await reserve(muster, own));
  for (const display_name of names.slice(0, 2)) {
    const body = { display_name, config: {} };
    await muster.api.ok('POST', versionsOf(own), { token: own.cloud_token, body });
  }
  expect(await reserve(muster, other)).toEndWith('-1');
});

async function reserve({ api }: Pick<typeof muster, 'api'>, owner: TestGame): Promise<string> {
  const path = `${versionsOf(owner)}/reserve-name`;
  return (await api.ok('POST', path, { token: owner.cloud_token })).version_display_name;
}
