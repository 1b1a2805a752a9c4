import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { buildsOf } from '../../support/builds.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { prepareScript } from '../../support/uploads.ts';

const muster = shareService();
let game: TestGame;
let builds: ReturnType<typeof buildsOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  builds = buildsOf(muster, game);
});

const tagsOf = async (id: string): Promise<Record<string, string>> => (await builds.get(id)).body.build.tags;
const CURRENT = { tags: { current: 'true' }, exclusive_tags: ['current'] };

describe('tags are refused, and nothing is changed,', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, 'x']));
  const MISSING = 'BUILDS_TAGS_MISSING_EXCLUSIVE_KEY';
  const CASES: [what: string, body: object, code: string][] = [
    ['that are no object', {}, 'API_BAD_BODY'],
    ['that are a list', { tags: ['a'] }, 'API_BAD_BODY'],
    ['with a value that is no string', { tags: { a: 1 } }, 'API_BAD_BODY'],
    ['with an exclusive tag of null', { tags: { a: null }, exclusive_tags: ['a'] }, 'BUILDS_TAGS_NULL_EXCLUSIVE_KEY'],
    ['with an empty value', { tags: { a: '' } }, 'API_BAD_BODY'],
    ['with a value of 1025 characters', { tags: { a: 'x'.repeat(1_025) } }, 'API_BAD_BODY'],
    ['with an empty name', { tags: { '': 'a' } }, 'API_BAD_BODY'],
    ['with a name of 33 characters', { tags: { ['x'.repeat(33)]: 'a' } }, 'API_BAD_BODY'],
    ['with a value of 1025 bytes', { tags: { a: `x${'ä'.repeat(512)}` } }, 'API_BAD_BODY'],
    ['with a name of 33 bytes', { tags: { [`x${'ä'.repeat(16)}`]: 'a' } }, 'API_BAD_BODY'],
    ['with the character zero', { tags: { a: 'a\0' } }, 'API_BAD_BODY'],
    ['if there are nine', { tags: many(9) }, 'API_BAD_BODY'],
    ['if the build would have nine', { tags: { ...many(7), mine: 'no' } }, 'BUILDS_TOO_MANY_TAGS'],
    ['if nine names are exclusive', { tags: many(8), exclusive_tags: Array(9).fill('a1') }, 'API_BAD_BODY'],
    ['if an exclusive name is not among them', { tags: { a: 'b' }, exclusive_tags: ['b'] }, MISSING],
    ['if an exclusive name is among the earlier tags only', { tags: { a: 'b' }, exclusive_tags: ['mine'] }, MISSING],
    ['if an exclusive name is a property of every object', { tags: { a: 'b' }, exclusive_tags: ['toString'] }, MISSING],
    ['if an exclusive name is __proto__', { tags: { a: 'b' }, exclusive_tags: ['__proto__'] }, MISSING],
  ];
  test.each(CASES)('%s', async (_, body, code) => {
    const [id, other] = [await builds.make(), await builds.make()];
    for (const build_id of [id, other]) await builds.setTags(build_id, { tags: { mine: 'yes', a: 'b' } });
    expect(outcomeOf(await builds.setTags(id, body))).toBe(`400 ${code}`);
    for (const build_id of [id, other]) expect(await tagsOf(build_id)).toEqual({ mine: 'yes', a: 'b' });
  });

  test('of a missing build: exclusive tags stay where they are', async () => {
    const id = await builds.make();
    await builds.setTags(id, CURRENT);
    const staging = buildsOf(muster, game, { environment_id: game.staging_id });
    for (const missing of [crypto.randomUUID(), await staging.make()]) {
      expect(outcomeOf(await builds.setTags(missing, CURRENT))).toBe('404 BUILDS_BUILD_NOT_FOUND');
      expect(await tagsOf(id)).toEqual({ current: 'true' });
    }
  });
});

test('tags: the limits are in bytes', async () => {
  const id = await builds.make();
  const name = 'ä'.repeat(16);
  expect(outcomeOf(await builds.setTags(id, { tags: { [name]: 'ä'.repeat(512) } }))).toBe('200');
  const { body } = await builds.setTags(id, { tags: { [`x${name}`]: 'a' } });
  expect(body.message).toContain(`"tags.x${name}": expected a name of at most 32 bytes in UTF-8`);
});

test('tags: a wrong type is refused with the types that are allowed', async () => {
  const { body } = await builds.setTags(await builds.make(), { tags: { a: 1 } });
  expect(body.message).toContain('"tags.a": expected string or null');
});

describe('tags', () => {
  test('can be removed from a build that has more than the limit', async () => {
    const id = await builds.make();
    const tags = Object.fromEntries(Array.from({ length: 10 }, (_, number) => [`old${number}`, 'x']));
    await muster.database.queries.execute(
      sql`update builds set tags = ${JSON.stringify(tags)}::jsonb where build_id = ${id}`,
    );
    expect(outcomeOf(await builds.setTags(id, { tags: { old0: null } }))).toBe('200');
    expect(Object.keys(await tagsOf(id))).toHaveLength(9);
  });

  test('of null are removed, and the others stay', async () => {
    const id = await builds.make();
    await builds.setTags(id, { tags: { os: 'linux', arch: 'arm', mood: 'calm' } });
    const answer = await builds.setTags(id, { tags: { os: null, never: null, arch: 'x64' } });
    expect(outcomeOf(answer)).toBe('200');
    expect(await tagsOf(id)).toEqual({ arch: 'x64', mood: 'calm' });
  });

  test('are merged into those of the build', async () => {
    const id = await builds.make();
    const answer = await builds.setTags(id, { tags: { os: 'linux', arch: 'arm' } });
    expect([answer.status, answer.body]).toEqual([200, {}]);
    await builds.setTags(id, { tags: { arch: 'x64', mood: 'calm' } });
    expect(await tagsOf(id)).toEqual({ os: 'linux', arch: 'x64', mood: 'calm' });
    await builds.setTags(id, { tags: {} });
    expect(await tagsOf(id)).toEqual({ os: 'linux', arch: 'x64', mood: 'calm' });
  });

  test('may be any text', async () => {
    const id = await builds.make();
    const tags = { '"': "'; drop table builds; --", '%_\\': '\u202e\n', 地图: '沙漠'.repeat(170), constructor: '{}' };
    expect(outcomeOf(await builds.setTags(id, { tags, exclusive_tags: Object.keys(tags) }))).toBe('200');
    expect(await tagsOf(id)).toEqual(tags);
    expect(await builds.idsWith(tags)).toEqual([id]);
  });

  test('are set before a build is complete', async () => {
    const id = await builds.make();
    expect(outcomeOf(await builds.complete(id))).toBe('400 UPLOAD_INCOMPLETE');
    expect(outcomeOf(await builds.setTags(id, CURRENT))).toBe('200');
    expect(await builds.idsWith({ current: 'true' })).toEqual([id]);
  });

  test('of a build of the whole game cannot be set in an environment', async () => {
    const { build_id } = await prepareScript(muster, game);
    expect(outcomeOf(await builds.setTags(build_id, CURRENT))).toBe('404 BUILDS_BUILD_NOT_FOUND');
    expect(await tagsOf(build_id)).toEqual({});
  });
});

describe('an exclusive tag', () => {
  test('is removed from the other builds of the environment with the same name and value', async () => {
    const [old, draft, fresh] = [await builds.make(), await builds.make(), await builds.make()];
    await builds.setTags(old, { tags: { current: 'true', os: 'linux' } });
    await builds.setTags(draft, { tags: { current: 'maybe' } });
    expect(outcomeOf(await builds.setTags(fresh, CURRENT))).toBe('200');
    expect(await tagsOf(old)).toEqual({ os: 'linux' });
    expect(await tagsOf(draft)).toEqual({ current: 'maybe' });
    expect(await tagsOf(fresh)).toEqual({ current: 'true' });
    expect(outcomeOf(await builds.setTags(fresh, CURRENT))).toBe('200');
    expect(await builds.idsWith({ current: 'true' })).toEqual([fresh]);
  });

  test('stays on builds of other environments and games', async () => {
    const stranger = await makeGame(muster.api, muster.administrator_token);
    const elsewhere = [buildsOf(muster, game, { environment_id: game.staging_id }), buildsOf(muster, stranger)];
    for (const place of elsewhere) await place.setTags(await place.make(), CURRENT);
    await builds.setTags(await builds.make(), CURRENT);
    for (const place of [builds, ...elsewhere]) expect(await place.idsWith({ current: 'true' })).toHaveLength(1);
  });

  test('is on one build after concurrent requests', async () => {
    const ids: string[] = [];
    while (ids.length < 8) ids.push(await builds.make());
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(ids.map((id) => builds.setTags(id, CURRENT)));
      expect(answers.map(outcomeOf)).toEqual(ids.map(() => '200'));
      expect(await builds.idsWith({ current: 'true' })).toHaveLength(1);
    }
  });

  test('ends on the requested builds when several are swapped concurrently', async () => {
    const [one, other] = [await builds.make(), await builds.make()];
    const ask = (id: string, exclusive_tags: string[]) =>
      builds.setTags(id, { tags: { a: 'x', b: 'x' }, exclusive_tags });
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all([ask(one, ['a', 'b']), ask(other, ['b', 'a'])]);
      expect(answers.map(outcomeOf)).toEqual(['200', '200']);
      expect(await builds.idsWith({ a: 'x' })).toHaveLength(1);
      expect(await builds.idsWith({ b: 'x' })).toEqual(await builds.idsWith({ a: 'x' }));
    }
  });
});
