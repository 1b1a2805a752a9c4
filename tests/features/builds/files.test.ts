import { beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf } from '../../support/builds.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const HOUR_MS = 3_600_000;
const SOURCE = `console.log('${crypto.randomUUID()}');`;

const muster = shareService();
let game: TestGame;
let other: TestGame;
let build_id: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  other = await makeGame(muster.api, muster.administrator_token);
  build_id = await uploadScript(muster.api, game, SOURCE);
});

const linkTo = (id: string, of = game) => muster.api.get(`${buildsOf(muster, of).path}/${id}/file`, of.cloud_token);
const refusalOf = async (url: string) => {
  const response = await fetch(url);
  return `${response.status} ${(await response.json()).code}`;
};

describe('the file of a build', () => {
  test('has no link for another game, for a public token, or before the build is complete', async () => {
    expect(outcomeOf(await linkTo(build_id, other))).toBe('404 BUILDS_BUILD_NOT_FOUND');
    expect(outcomeOf(await linkTo(crypto.randomUUID()))).toBe('404 BUILDS_BUILD_NOT_FOUND');
    const builds = buildsOf(muster, game);
    const public_answer = await muster.api.get(`${builds.path}/${build_id}/file`, game.public_token);
    expect(outcomeOf(public_answer)).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    expect(outcomeOf(await linkTo(await builds.make()))).toBe('400 BUILDS_BUILD_NOT_COMPLETE');
  });

  test('is refused by a link that was altered, is for something else, or has expired', async () => {
    const { url } = (await linkTo(build_id)).body;
    const foreign = await uploadScript(muster.api, other, SOURCE);
    const exported = `/cloud/games/${game.game_id}/matchmaker/lobbies/export-history`;
    const history = await muster.api.post(exported, game.cloud_token, { query_start: 0, query_end: 1 });
    const altered = [
      url.replace(build_id, foreign),
      url.replace(game.game_id, other.game_id),
      url.replace(/&signature=.*/, ''),
      `${url}&build_id=${foreign}`,
      history.body.url.replace('/exports/lobby-history.csv', '/builds/file'),
    ];
    for (const address of altered) expect(await refusalOf(address)).toBe('403 LINK_INVALID');
    muster.clock.advance(HOUR_MS + 1_000);
    expect(await refusalOf(url)).toBe('403 LINK_INVALID');
  });

  test('is returned without a token, at any address of the service, with its length and digest', async () => {
    const { url, content_length, sha256 } = (await linkTo(build_id)).body;
    const digest = new Bun.CryptoHasher('sha256').update(SOURCE);
    expect({ content_length, sha256 }).toEqual({
      content_length: SOURCE.length,
      sha256: digest.copy().digest('hex'),
    });
    const elsewhere = new URL(url);
    elsewhere.hostname = 'localhost';
    for (const address of [url, elsewhere.href]) {
      const response = await fetch(address);
      expect(await response.text()).toBe(SOURCE);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-length': String(SOURCE.length),
        'content-disposition': `attachment; filename="${build_id}"`,
        'repr-digest': `sha-256=:${digest.copy().digest('base64')}:`,
      });
    }
  });
});
