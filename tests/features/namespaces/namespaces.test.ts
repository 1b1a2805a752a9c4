import { beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { contractProblems } from '../../support/contract.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
let game: TestGame;
let other: TestGame;
/** The version that the game starts with, and another. */
let first: string;
let second: string;
beforeAll(async () => {
  other = await makeGame(muster.api, muster.administrator_token);
});
beforeEach(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  first = (await readGame()).versions[0].version_id;
  second = await createVersion(game);
});

const namespacesOf = ({ game_id }: TestGame) => `/cloud/games/${game_id}/namespaces`;
const prodOf = ({ game_id, namespace_id }: TestGame) => `/cloud/games/${game_id}/namespaces/${namespace_id}`;
const create = (body: object) =>
  muster.api.post(namespacesOf(game), game.cloud_token, {
    display_name: 'Canary',
    name_id: 'canary',
    version_id: first,
    ...body,
  });
const setVersion = (version_id: string) => muster.api.put(`${prodOf(game)}/version`, game.cloud_token, { version_id });
const readGame = async () =>
  (await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token })).game;
const readProd = async () => (await muster.api.ok('GET', prodOf(game), { token: game.cloud_token })).namespace;
const history = async (query = '') =>
  (await muster.api.ok('GET', `${prodOf(game)}/version-history${query}`, { token: game.cloud_token })).versions.map(
    ({ version_id }: { version_id: string }) => version_id,
  );

async function createVersion({ game_id, cloud_token: token }: TestGame): Promise<string> {
  const body = { display_name: crypto.randomUUID(), config: {} };
  return (await muster.api.ok('POST', `/cloud/games/${game_id}/versions`, { token, body })).version_id;
}

describe('creating a namespace is refused', () => {
  const CASES: [object, string[]][] = [
    [{ display_name: '' }, ['display-name.too-short']],
    [{ display_name: 'x'.repeat(129) }, ['display-name.too-long']],
    [{ display_name: 'x\ty' }, ['display-name.invalid']],
    [{ name_id: '' }, ['name-id.too-short']],
    [{ name_id: 'x'.repeat(17) }, ['name-id.too-long']],
    [{ name_id: 'Canary' }, ['name-id.invalid']],
    [{ name_id: 'a_b' }, ['name-id.invalid']],
    [{ name_id: '-a' }, ['name-id.invalid']],
    [{ name_id: 'a--b' }, ['name-id.invalid']],
    [{ name_id: 'prod' }, ['name-id.not-unique']],
    [{ name_id: 'a b', display_name: ' ' }, ['display-name.invalid', 'name-id.invalid']],
  ];
  for (const [names, problems] of CASES) {
    test(`${JSON.stringify(names).slice(0, 40)}: ${problems.join(', ')}`, async () => {
      const body = { display_name: 'Canary', name_id: 'canary', ...names };
      const validated = await muster.api.post(`${namespacesOf(game)}/validate`, game.cloud_token, body);
      expect(contractProblems('CloudGamesNamespacesValidateGameNamespaceResponse', validated.body)).toEqual([]);
      expect(validated.body.errors.map(({ path }: { path: string[] }) => path.join('.'))).toEqual(problems);
      const answer = await create(names);
      expect(outcomeOf(answer)).toBe('400 VALIDATION_ERROR');
      expect(answer.body.metadata).toEqual(validated.body);
      expect((await readGame()).namespaces).toHaveLength(2);
    });
  }

  test('with what its names must be', async () => {
    const { message } = (await create({ display_name: ' x', name_id: 'a b' })).body;
    expect(message).toBe(
      'The request has invalid content: display-name.invalid (no blanks at its ends, and never two in a row; no other invisible characters), name-id.invalid (only lower-case letters and digits, with single dashes between them).',
    );
  });

  test('on a version that is missing, or of another game', async () => {
    for (const version_id of [crypto.randomUUID(), await createVersion(other)]) {
      expect(outcomeOf(await create({ version_id }))).toBe('404 VERSION_NOT_FOUND');
    }
    expect(outcomeOf(await create({ version_id: 'newest' }))).toBe('400 API_BAD_BODY');
  });

  test('if the game has 1,000 of them, also concurrently', async () => {
    await muster.database.queries.execute(sql`
      insert into namespaces (namespace_id, game_id, name_id, display_name, version_id, create_ts)
      select gen_random_uuid(), ${game.game_id}, 'n-' || number, 'Many', ${first}, now()
      from generate_series(1, 997) as number`);
    const answers = await Promise.all([1, 2, 3].map((number) => create({ name_id: `more-${number}` })));
    expect(answers.map(outcomeOf).sort()).toEqual(['200', ...Array(2).fill('400 GAME_TOO_MANY_NAMESPACES')]);
  });

  test('if another one of the game has its name, also concurrently', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => create({})));
    expect(answers.map(outcomeOf).sort()).toEqual(['200', ...Array(5).fill('400 VALIDATION_ERROR')]);
    expect((await readGame()).namespaces).toHaveLength(3);
  });
});

describe('a namespace', () => {
  test('has names up to the limits, and a version and settings of its own', async () => {
    const names = { name_id: 'a-23456789-12345', display_name: 'x'.repeat(128) };
    const { body } = await create({ ...names, version_id: second });
    const path = `${namespacesOf(game)}/${body.namespace_id}`;
    const { namespace } = await muster.api.ok('GET', path, { token: game.cloud_token });
    expect(namespace).toMatchObject({ namespace_id: body.namespace_id, ...names, version_id: second });
    expect(contractProblems('CloudNamespaceFull', namespace)).toEqual([]);
    expect(namespace.config.matchmaker).toEqual({
      lobby_count_max: 128,
      max_players_per_client: 8,
      max_players_per_client_vpn: 4,
      max_players_per_client_proxy: 2,
      max_players_per_client_tor: 2,
      max_players_per_client_hosting: 2,
    });
  });

  test('may be created on, and moved to, a version whose id is in capitals', async () => {
    expect(outcomeOf(await create({ version_id: first.toUpperCase() }))).toBe('200');
    expect(outcomeOf(await setVersion(second.toUpperCase()))).toBe('200');
    expect((await readProd()).version_id).toBe(second);
  });

  test('may have the name of one in another game', async () => {
    await create({});
    const body = { display_name: 'Canary', name_id: 'canary', version_id: await createVersion(other) };
    expect(outcomeOf(await muster.api.post(namespacesOf(other), other.cloud_token, body))).toBe('200');
  });

  test('is listed by its display name', async () => {
    await create({ display_name: 'Q', name_id: 'quality' });
    await create({ display_name: 'A', name_id: 'alpha' });
    const names = (await readGame()).namespaces.map(({ name_id }: { name_id: string }) => name_id);
    expect(names).toEqual(['alpha', 'prod', 'quality', 'staging']);
  });

  test('of another game does not exist, nor do its settings and tokens', async () => {
    const foreign = `${namespacesOf(game)}/${other.namespace_id}`;
    const missing = `${namespacesOf(game)}/${crypto.randomUUID()}`;
    for (const namespace of [foreign, missing]) {
      const answers = await Promise.all([
        muster.api.get(namespace, game.cloud_token),
        muster.api.get(`${namespace}/version-history`, game.cloud_token),
        muster.api.put(`${namespace}/version`, game.cloud_token, { version_id: first }),
        muster.api.post(`${namespace}/tokens/public`, game.cloud_token),
        muster.api.post(`${namespace}/tokens/development`, game.cloud_token, { hostname: 'localhost' }),
        muster.api.post(`${namespace}/mm-config`, game.cloud_token, { lobby_count_max: 1, max_players: 1 }),
      ]);
      expect(answers.map(outcomeOf)).toEqual(Array(6).fill('404 GAME_ENVIRONMENT_NOT_FOUND'));
    }
  });
});

describe("a namespace's version", () => {
  test('cannot become one that is missing or of another game, and then stays', async () => {
    for (const version_id of [crypto.randomUUID(), await createVersion(other)]) {
      expect(outcomeOf(await setVersion(version_id))).toBe('404 VERSION_NOT_FOUND');
    }
    expect(outcomeOf(await muster.api.put(`${prodOf(game)}/version`, game.cloud_token, {}))).toBe('400 API_BAD_BODY');
    expect((await readProd()).version_id).toBe(first);
    expect(await history()).toEqual([first]);
  });

  test('changes at once for that namespace, and for no other', async () => {
    expect((await setVersion(second)).body).toEqual({});
    expect((await readProd()).version_id).toBe(second);
    const versions = (await readGame()).namespaces.map(({ version_id }: { version_id: string }) => version_id);
    expect(versions).toEqual([second, first]);
  });

  test('has a history, latest first, with a limit', async () => {
    await setVersion(second);
    await setVersion(first);
    expect(await history()).toEqual([first, second, first]);
    expect(await history('?limit=2')).toEqual([first, second]);
    const answer = await muster.api.ok('GET', `${prodOf(game)}/version-history`, { token: game.cloud_token });
    expect(contractProblems('CloudGamesNamespacesGetGameNamespaceVersionHistoryResponse', answer)).toEqual([]);
    expect(answer.versions[0].namespace_id).toBe(game.namespace_id);
    for (const limit of ['0', '-1', '1001', '1.5', 'many']) {
      const refused = await muster.api.get(`${prodOf(game)}/version-history?limit=${limit}`, game.cloud_token);
      expect(outcomeOf(refused)).toBe('400 API_BAD_QUERY_PARAMETER');
    }
  });

  test('has a history in pages: the time of the last version of one leads to the next', async () => {
    // More than one of them may be of the same millisecond by the clock.
    await Promise.all([second, first, second, first, second].map(setVersion));
    const path = `${prodOf(game)}/version-history`;
    const page = async (query: string): Promise<{ version_id: string; deploy_ts: string }[]> =>
      (await muster.api.ok('GET', `${path}?${query}`, { token: game.cloud_token })).versions;
    const all = await page('limit=32');
    expect(new Set(all.map(({ deploy_ts }) => deploy_ts)).size).toBe(6);
    const pages = [await page('limit=2')];
    for (let last = pages[0]?.at(-1); last && pages.length < 9; last = pages.at(-1)?.at(-1)) {
      pages.push(await page(`limit=2&anchor=${last.deploy_ts}`));
    }
    expect(pages.flat()).toEqual(all);
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 2, 0]);
    const in_milliseconds = Date.parse(pages[0]?.at(-1)?.deploy_ts ?? '');
    expect(await page(`limit=2&anchor=${in_milliseconds}`)).toEqual(pages[1] ?? []);
    expect(outcomeOf(await muster.api.get(`${path}?anchor=last`, game.cloud_token))).toBe(
      '400 API_BAD_QUERY_PARAMETER',
    );
  });

  test('set concurrently becomes one of the requested ones, and the history ends with it', async () => {
    const versions = [first, second, await createVersion(game)];
    const answers = await Promise.all([...versions, ...versions].map(setVersion));
    expect(answers.map(outcomeOf)).toEqual(Array(6).fill('200'));
    expect(await history()).toHaveLength(7);
    expect((await history())[0]).toBe((await readProd()).version_id);
  });
});
