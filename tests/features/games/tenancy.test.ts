import { beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, type Person } from '../../support/people.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
/** The path that is requested, and the caller. */
let own: TestGame;
let other: TestGame;
let outsider: Person;
let operations: { method: string; path: string }[];
beforeAll(async () => {
  own = await makeGame(muster.api, muster.administrator_token);
  other = await makeGame(muster.api, muster.administrator_token);
  outsider = await makeGuest(muster.api, other);
  const { paths } = await muster.api.ok('GET', '/openapi.json');
  operations = Object.entries<object>(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
  );
});

interface Scope {
  game_id: string;
  namespace_id: string;
}

const ofGame = () => operations.filter(({ path }) => path.includes('{game_id}'));
const ofNamespace = () => ofGame().filter(({ path }) => /\{(namespace|environment)_id\}/.test(path));

/** Calls every operation below a path, with unknown ids for everything in it. */
async function callAll(which: { method: string; path: string }[], scope: Scope, token: string): Promise<string[]> {
  const answers = await Promise.all(which.map(({ method, path }) => call(method, fillIn(path, scope), token)));
  return answers.map((answer, index) => `${which[index]?.method} ${which[index]?.path}: ${outcomeOf(answer)}`);
}

async function call(method: string, path: string, token: string): Promise<Answer> {
  return await muster.api.call(method, path, { token, ...(method === 'GET' ? {} : { body: {} }) });
}

function fillIn(path: string, { game_id, namespace_id }: Scope): string {
  return path
    .replace('{game_id}', game_id)
    .replace(/\{(namespace|environment)_id\}/, namespace_id)
    .replace(/\{[a-z_]+\}/g, () => crypto.randomUUID());
}

const missingScope = (): Scope => ({ game_id: crypto.randomUUID(), namespace_id: crypto.randomUUID() });
const count = (outcomes: string[], ...endings: string[]) =>
  outcomes.filter((outcome) => endings.some((ending) => outcome.endsWith(ending))).length;
/** Refused before the game is read. */
const WRONG_KIND = '401 CLAIMS_MISSING_ENTITLEMENT';
const NOT_FOR_SERVICES = '403 API_FORBIDDEN';

test('tenancy: there are enough operations to call', () => {
  expect(ofGame().length).toBeGreaterThan(40);
  expect(ofNamespace().length).toBeGreaterThan(20);
});

describe('a foreign game looks like a missing one, for every operation,', () => {
  const TOKENS: [string, () => string][] = [
    ["another game's cloud token", () => other.cloud_token],
    ["another game's service token", () => other.service_token],
    ['an identity that is no member', () => outsider.token],
  ];
  for (const [who, token] of TOKENS) {
    test(`to ${who}`, async () => {
      const foreign = await callAll(ofGame(), own, token());
      expect(foreign).toEqual(await callAll(ofGame(), missingScope(), token()));
      expect(count(foreign, '404 GAME_NOT_FOUND', WRONG_KIND, NOT_FOR_SERVICES)).toBe(foreign.length);
      expect(count(foreign, '404 GAME_NOT_FOUND')).toBeGreaterThan(0);
    });
  }

  test('and the answers contain nothing else', async () => {
    const read = (game_id: string) => muster.api.get(`/cloud/games/${game_id}`, other.cloud_token);
    const [foreign, missing] = [await read(own.game_id), await read(crypto.randomUUID())];
    expect(foreign.body).toEqual({ ...missing.body, ray_id: foreign.body.ray_id });
  });

  test('to the tokens that games give to players, which allow none of this', async () => {
    for (const token of [own.public_token, other.public_token]) {
      const outcomes = await callAll(ofGame(), own, token);
      expect(count(outcomes, WRONG_KIND)).toBe(outcomes.length);
    }
  });
});

describe('a namespace of another game looks like a missing one', () => {
  test("to the game's cloud token and to its developers", async () => {
    for (const token of [own.cloud_token, muster.administrator_token]) {
      const foreign = await callAll(ofNamespace(), { ...own, namespace_id: other.namespace_id }, token);
      expect(foreign).toEqual(await callAll(ofNamespace(), { ...own, namespace_id: crypto.randomUUID() }, token));
      expect(count(foreign, '404 GAME_ENVIRONMENT_NOT_FOUND') + count(foreign, WRONG_KIND)).toBe(foreign.length);
      expect(count(foreign, '404 GAME_ENVIRONMENT_NOT_FOUND')).toBeGreaterThan(20);
    }
  });

  test("to a service token, like its own game's other namespace", async () => {
    const places = [
      { ...own, namespace_id: own.staging_id },
      { ...own, namespace_id: crypto.randomUUID() },
      { ...own, namespace_id: other.namespace_id },
      // The own namespace, below another game.
      { ...other, namespace_id: own.namespace_id },
    ];
    const outcomes = await Promise.all(places.map((scope) => callAll(ofNamespace(), scope, own.service_token)));
    for (const foreign of outcomes.slice(0, 3)) {
      expect(foreign).toEqual(outcomes[0] ?? []);
      expect(count(foreign, '404 GAME_NOT_FOUND', WRONG_KIND, NOT_FOR_SERVICES)).toBe(foreign.length);
    }
    const [elsewhere = []] = outcomes.slice(3);
    expect(count(elsewhere, '404 GAME_ENVIRONMENT_NOT_FOUND', WRONG_KIND, NOT_FOR_SERVICES)).toBe(elsewhere.length);
  });
});

describe('members', () => {
  const group = () => `/group/groups/${own.group_id}`;
  const invite = () => muster.api.ok('POST', `${group()}/invites`, { token: muster.administrator_token });

  test('read and write the things of their group from joining to leaving', async () => {
    const member = await makeGuest(muster.api, own);
    const readAndWrite = async () => [
      outcomeOf(await muster.api.get(`/cloud/games/${own.game_id}`, member.token)),
      outcomeOf(await muster.api.post(`/cloud/games/${own.game_id}/tokens/cloud`, member.token)),
    ];
    expect(await readAndWrite()).toEqual(['404 GAME_NOT_FOUND', '404 GAME_NOT_FOUND']);
    await muster.api.ok('POST', `/group/invites/${(await invite()).code}/consume`, { token: member.token });
    expect(await readAndWrite()).toEqual(['200', '200']);
    await muster.api.ok('POST', `${group()}/kick/${member.identity_id}`, { token: muster.administrator_token });
    expect(await readAndWrite()).toEqual(['404 GAME_NOT_FOUND', '404 GAME_NOT_FOUND']);
  });
});
