import { describe, expect, test } from 'bun:test';
import { makeGame } from '../../support/game.ts';
import { gamePicture, groupPicture, OWN_PICTURE, type PicturePaths } from '../../support/hub/pictures.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const DAY_MS = 24 * 3_600_000;
const BYTES = 512 * 1_024;
const REACHED = '429 UPLOAD_QUOTA_REACHED';

describe('pictures: with a quota of one MiB a day and two in all', () => {
  const muster = shareService({ MUSTER_PICTURES_DAY_MIB: '1', MUSTER_PICTURES_MIB: '2' });
  const announce = (token: string, { prepare }: PicturePaths = OWN_PICTURE, content_length = BYTES) =>
    muster.api.post(prepare, token, { path: 'a.png', content_length });

  test('all players of a namespace share one quota for all purposes', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const [one, two, three] = [
      await makeGuest(muster.api, game),
      await makeGuest(muster.api, game),
      await makeGuest(muster.api, game),
    ];
    expect(outcomeOf(await announce(one.token))).toBe('200');
    expect(outcomeOf(await announce(two.token, groupPicture(game.group_id)))).toBe('200');
    const refused = await announce(three.token);
    expect(outcomeOf(refused)).toBe(REACHED);
    expect(refused.body.message).toContain('1048576 bytes a day');
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, DAY_MS / 1_000 + 1);
    // A small picture counts for more than its bytes; otherwise there could be any number of them.
    expect(outcomeOf(await announce(three.token, OWN_PICTURE, 1))).toBe(REACHED);

    const other = await makeGame(muster.api, muster.administrator_token);
    expect(outcomeOf(await announce((await makeGuest(muster.api, other)).token))).toBe('200');
    expect(outcomeOf(await announce(game.cloud_token, gamePicture(game.game_id, 'logo')))).toBe('200');
    expect(outcomeOf(await announce(muster.administrator_token))).toBe('200');
  });

  test('a picture larger than the quota of a day is refused without a time to try again', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const logo = gamePicture(game.game_id, 'logo');
    const refused = await announce(game.cloud_token, logo, 2 * BYTES + 1);
    expect(outcomeOf(refused)).toBe(REACHED);
    expect(refused.headers.get('retry-after')).toBeNull();
    expect(outcomeOf(await announce(game.cloud_token, logo, 2 * BYTES - 65_536))).toBe('200');
  });

  test('the next day allows more, up to the total', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const logo = () => announce(game.cloud_token, gamePicture(game.game_id, 'logo'));
    for (const outcomes of [
      ['200', '200', REACHED],
      ['200', '200', REACHED],
      [REACHED, REACHED, REACHED],
    ]) {
      const answers = [await logo(), await logo(), await logo()];
      expect(answers.map(outcomeOf)).toEqual(outcomes);
      muster.clock.advance(DAY_MS);
    }
    expect((await logo()).body.message).toContain('2097152 bytes in all');
  });

  test('of concurrent uploads for the last bytes, one is admitted', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const logo = () => announce(game.cloud_token, gamePicture(game.game_id, 'logo'));
    expect(outcomeOf(await logo())).toBe('200');
    const outcomes = (await Promise.all(Array.from({ length: 8 }, logo))).map(outcomeOf);
    expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === REACHED)).toHaveLength(7);
  });
});

test('guests of one address share a rate limit', async () => {
  await using muster = await openTestService({ MUSTER_LIMITS_SCALE: '1' });
  const game = await makeGame(muster.api, muster.administrator_token);
  const announce = (token: string) => muster.api.post(OWN_PICTURE.prepare, token, { path: 'a.png', content_length: 1 });
  for (let guest = 0; guest < 6; guest += 1) {
    const { token } = await makeGuest(muster.api, game);
    for (let picture = 0; picture < 10; picture += 1) expect(outcomeOf(await announce(token))).toBe('200');
  }
  expect(outcomeOf(await announce((await makeGuest(muster.api, game)).token))).toBe('429 API_RATE_LIMIT');
});
