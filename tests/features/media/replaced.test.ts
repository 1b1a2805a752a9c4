import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { gamePicture, groupPicture, OWN_PICTURE, uploadPicture } from '../../support/hub/pictures.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const statusOf = async (place: string, upload_id: string) =>
  (await fetch(`${muster.config.public_url}/media/${place}/${upload_id}`)).status;

describe('a replaced picture', () => {
  const CASES = [
    { of: 'a person', place: 'user-avatar', paths: () => OWN_PICTURE },
    { of: 'a group', place: 'team-avatar', paths: () => groupPicture(game.group_id) },
    { of: 'a game (logo)', place: 'game-logo', paths: () => gamePicture(game.game_id, 'logo') },
    { of: 'a game (banner)', place: 'game-banner', paths: () => gamePicture(game.game_id, 'banner') },
  ];
  for (const { of, place, paths } of CASES) {
    test(`of ${of} is no longer served, and cannot be completed again`, async () => {
      const token = muster.administrator_token;
      const first = await uploadPicture(muster.api, token, paths());
      expect(await statusOf(place, first.upload_id)).toBe(200);
      // Repeating the completion changes nothing.
      expect(outcomeOf(await muster.api.post(first.complete, token))).toBe('200');
      const second = await uploadPicture(muster.api, token, paths());
      expect([await statusOf(place, first.upload_id), await statusOf(place, second.upload_id)]).toEqual([404, 200]);
      expect(outcomeOf(await muster.api.post(first.complete, token))).toBe('404 UPLOAD_NOT_FOUND');
      expect(await statusOf(place, second.upload_id)).toBe(200);
    });
  }

  test('to choose for a game replaces none: each stays', async () => {
    const [first, second] = [
      await uploadPicture(muster.api, game.cloud_token, gamePicture(game.game_id, 'avatar')),
      await uploadPicture(muster.api, game.cloud_token, gamePicture(game.game_id, 'avatar')),
    ];
    for (const { upload_id } of [first, second]) expect(await statusOf('custom-avatar', upload_id)).toBe(200);
  });
});

test('pictures: one upload cannot be the picture of two groups', async () => {
  const other = await makeGame(muster.api, muster.administrator_token);
  const token = muster.administrator_token;
  const { upload_id } = await uploadPicture(muster.api, token, groupPicture(game.group_id));
  const elsewhere = groupPicture(other.group_id).complete.replace(':upload_id', upload_id);
  expect(outcomeOf(await muster.api.post(elsewhere, token))).toBe('400 UPLOAD_INVALID');
  const { group } = await muster.api.ok('GET', `/group/groups/${other.group_id}/summary`, { token });
  expect(group.avatar_url).toBeUndefined();
});

test('pictures: that of a deleted person is no longer served', async () => {
  const { token, identity_id } = await makeGuest(muster.api, game);
  const { upload_id } = await uploadPicture(muster.api, token, OWN_PICTURE);
  const shown = await fetch(`${muster.config.public_url}/media/user-avatar/${upload_id}`);
  // A cache may keep it for an hour, not for a year.
  expect(shown.headers.get('cache-control')).toContain('max-age=3600');
  await muster.api.ok('POST', '/identity/identities/self/delete-request', { token, body: {} });
  muster.clock.advance(31 * DAY_MS);
  expect(await statusOf('user-avatar', upload_id)).toBe(200);
  // Another process on the database deletes people at its start.
  await using other = await openTestService({}, { database_of: muster });
  await waitFor(
    () => other.events.some((event) => event.event === 'identity_forgotten' && event.identity_id === identity_id),
    'the person to be deleted',
  );
  expect(await statusOf('user-avatar', upload_id)).toBe(404);
});
