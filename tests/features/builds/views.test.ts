import { beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf, SCRIPT } from '../../support/builds.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { completion, prepareScript, sendPart } from '../../support/uploads.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const summaries = async ({ game_id, cloud_token: token }: TestGame = game) =>
  (await muster.api.ok('GET', `/cloud/games/${game_id}/builds`, { token })).builds;
const idOf = ({ id }: { id: string }): string => id;
const RFC_3339 = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const WATCH = { index: expect.any(String) };

describe('a build is not shown, completed or tagged', () => {
  const OPERATIONS: ((builds: ReturnType<typeof buildsOf>, build_id: string) => ReturnType<typeof muster.api.get>)[] = [
    (builds, build_id) => builds.get(build_id),
    (builds, build_id) => builds.complete(build_id),
    (builds, build_id) => builds.setTags(build_id, { tags: { mine: 'yes' } }),
  ];

  test('outside its environment, where it does not exist', async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    const build_id = await buildsOf(muster, game).make();
    const { staging_id: environment_id } = game;
    const CASES: [who: string, builds: ReturnType<typeof buildsOf>, is: string][] = [
      ["in the game's other environment", buildsOf(muster, game, { environment_id }), '404 BUILDS_BUILD_NOT_FOUND'],
      ['in another game', buildsOf(muster, other), '404 BUILDS_BUILD_NOT_FOUND'],
      ["with another game's token", buildsOf(muster, game, { token: other.cloud_token }), '404 GAME_NOT_FOUND'],
      [
        "in another game's environment",
        buildsOf(muster, { ...game, namespace_id: other.namespace_id }),
        '404 GAME_ENVIRONMENT_NOT_FOUND',
      ],
    ];
    for (const [who, builds, is] of CASES) {
      for (const call of OPERATIONS) expect(`${who}: ${outcomeOf(await call(builds, build_id))}`).toBe(`${who}: ${is}`);
    }
    expect((await buildsOf(muster, game).get(build_id)).body.build.tags).toEqual({});
  });

  test('if it does not exist', async () => {
    const builds = buildsOf(muster, game);
    for (const call of OPERATIONS) {
      expect(outcomeOf(await call(builds, crypto.randomUUID()))).toBe('404 BUILDS_BUILD_NOT_FOUND');
      expect(outcomeOf(await call(builds, 'nonsense'))).toBe('404 API_NOT_FOUND');
    }
  });

  test('to players', async () => {
    const builds = buildsOf(muster, game, { token: game.public_token });
    for (const answer of [await builds.list(), await builds.prepare(SCRIPT)]) {
      expect(outcomeOf(answer)).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
  });
});

describe('a build is shown', () => {
  test('to its environment, as soon as it is prepared', async () => {
    const builds = buildsOf(muster, game);
    const id = await builds.make({ ...SCRIPT, name: 'Version 1' });
    const build = { id, name: 'Version 1', created_at: RFC_3339, content_length: 1, tags: {} };
    expect((await builds.get(id)).body).toEqual({ build, watch: WATCH });
    expect((await builds.list()).body.builds).toContainEqual(build);
    expect((await builds.get(id.toUpperCase())).body.build).toEqual(build);
  });

  test('to the service token of its environment, which may not prepare, complete or tag it', async () => {
    const id = await buildsOf(muster, game).make();
    const builds = buildsOf(muster, game, { token: game.service_token });
    const refused = [await builds.prepare(SCRIPT), await builds.complete(id), await builds.setTags(id, { tags: {} })];
    for (const answer of refused) {
      expect(outcomeOf(answer)).toBe('403 API_FORBIDDEN');
      expect(answer.body.message).toContain('use one of: identity, cloud');
    }
    expect((await builds.get(id)).body.build.id).toBe(id);
    expect((await builds.list()).body.builds.map(idOf)).toContain(id);
  });

  test('to the cloud, complete or not', async () => {
    const { build_id, upload_id, requests } = await prepareScript(muster, game);
    const summary = {
      build_id,
      upload_id,
      display_name: 'Test build',
      create_ts: RFC_3339,
      content_length: 1,
      complete: false,
      tags: {},
    };
    expect(await summaries()).toContainEqual(summary);
    for (const request of requests) await sendPart(request, 'x');
    expect(await completion(muster, { upload_id }, game.cloud_token)).toBe('200 complete');
    expect(await summaries()).toContainEqual({ ...summary, complete: true });
  });

  test('to all environments if it is of the whole game, and each can complete it', async () => {
    const { build_id, requests } = await prepareScript(muster, game);
    for (const request of requests) await sendPart(request, 'x');
    for (const environment_id of [game.namespace_id, game.staging_id]) {
      const builds = buildsOf(muster, game, { environment_id });
      expect((await builds.list()).body.builds.map(idOf)).toContain(build_id);
      expect(outcomeOf(await builds.complete(build_id))).toBe('200');
    }
    const other = await makeGame(muster.api, muster.administrator_token);
    expect((await buildsOf(muster, other).list()).body.builds).toEqual([]);
    expect(await summaries(other)).toEqual([]);
  });
});

describe('builds are listed', () => {
  test('newest first, only those of the environment', async () => {
    const own = await makeGame(muster.api, muster.administrator_token);
    const made: string[] = [];
    for (const [environment_id, count] of [
      [own.namespace_id, 3],
      [own.staging_id, 1],
    ] as const) {
      for (let index = 0; index < count; index += 1) {
        muster.clock.advance(1_000);
        made.unshift(await buildsOf(muster, own, { environment_id }).make());
      }
    }
    const ids = async (environment_id: string) =>
      (await buildsOf(muster, own, { environment_id }).list()).body.builds.map(idOf);
    expect(await ids(own.namespace_id)).toEqual(made.slice(1));
    expect(await ids(own.staging_id)).toEqual(made.slice(0, 1));
    expect((await summaries(own)).map(({ build_id }: { build_id: string }) => build_id)).toEqual(made);
  });

  test('by all requested tags', async () => {
    const own = await makeGame(muster.api, muster.administrator_token);
    const builds = buildsOf(muster, own);
    const TAGS = [{}, { os: 'linux' }, { os: 'linux', arch: 'arm' }, { os: 'other', arch: 'arm' }];
    const made: string[] = [];
    for (const tags of TAGS) {
      muster.clock.advance(1_000);
      const id = await builds.make();
      expect(outcomeOf(await builds.setTags(id, { tags }))).toBe('200');
      made.push(id);
    }
    const CASES: [tags: Record<string, string>, found: number[]][] = [
      [{}, [3, 2, 1, 0]],
      [{ os: 'linux' }, [2, 1]],
      [{ arch: 'arm' }, [3, 2]],
      [{ os: 'linux', arch: 'arm' }, [2]],
      [{ os: 'lin' }, []],
      [{ OS: 'linux' }, []],
      [{ 'os": "linux", "x': '' }, []],
      [{ "' or true --": '%' }, []],
    ];
    for (const [tags, found] of CASES) {
      expect(await builds.idsWith(tags)).toEqual(found.map((index) => made[index] ?? ''));
    }
  });

  test.each([
    '',
    '{',
    'null',
    '[]',
    '"a"',
    '1',
    '{"a":1}',
    '{"a":null}',
    '{"a":{"b":"c"}}',
    '{"a":"\\u0000"}',
    '{"\\ud800":"a"}',
  ])('not by invalid tags: %s', async (tags_json) => {
    const answer = await buildsOf(muster, game).list(tags_json);
    expect(outcomeOf(answer)).toBe('400 API_BAD_QUERY_PARAMETER');
    expect(answer.body.message).toBe('The query parameter "tags_json" is invalid: expected a JSON object of strings.');
  });

  test('one build whatever tags_json says', async () => {
    const id = await uploadScript(muster.api, game, '');
    const { path, setTags } = buildsOf(muster, game);
    expect(outcomeOf(await setTags(id, { tags: { map: 'ice' } }))).toBe('200');
    for (const tags of ['{"map":"ice"}', '{"map":"sand"}', 'nonsense']) {
      const answer = await muster.api.get(`${path}/${id}?tags_json=${encodeURIComponent(tags)}`, game.cloud_token);
      expect([tags, outcomeOf(answer), answer.body.build?.id]).toEqual([tags, '200', id]);
    }
  });
});
